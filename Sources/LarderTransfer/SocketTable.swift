/// What is known of each socket of a loop, by its number.
///
/// The socket that was looked at last lies beside the others: one request asks about its own a dozen times,
/// which takes no hashing so.
///
/// Not `Sendable`: belongs to one loop.
final class SocketTable {
    struct Watch {
        /// As epoll has them, but for a hushed socket.
        var events: UInt32
        /// It was waited for bytes on it: it is connected, and closed by way of `SocketPoller.close`.
        var hasRead: Bool
        /// libcurl wants nothing of it: it lies among the connections to be reused.
        var isIdle = false
    }

    struct Facts {
        fileprivate(set) var watch: Watch?
        /// Of our own making, and only answers may come on it: one of plain HTTP/1.1, or of TLS on which
        /// HTTP/1.1 was answered.
        fileprivate(set) var takesAnswersAlone = false
        /// Not plain: a TLS library may write to its connection at any time, also to end it.
        fileprivate(set) var mayBeWrittenTo = false
        /// Its peer runs on this machine.
        fileprivate(set) var isLoopback = false
        /// Which socket lies behind the number since it was opened (stat(2), `st_ino`): a number may come to
        /// be somebody else's unnoticed.
        fileprivate(set) var identity: UInt64?
        /// The one it was given.
        fileprivate(set) var trafficClass: UInt8?

        /// There is nothing to remember.
        fileprivate var isEmpty: Bool {
            self.identity == nil && self.watch == nil && !self.takesAnswersAlone
                && !self.mayBeWrittenTo && !self.isLoopback && self.trafficClass == nil
        }
    }

    enum Use {
        /// Of plain HTTP/1.1.
        case answers
        case others
    }

    /// Those that are not at hand.
    private var rest: [Int32: Facts] = [:]
    /// The number of the socket at hand; none is negative.
    private var number: Int32 = -1
    private var facts = Facts()

    /// How many are open.
    private(set) var count = 0
    /// How many of them lie idle.
    private(set) var idle = 0
    /// How many of them are for anything but plain HTTP/1.1.
    private(set) var others = 0
    /// How many of them have a traffic class.
    private(set) var classed = 0

    subscript(_ socket: Int32) -> Facts {
        self.bring(socket)
        return self.facts
    }

    /// One that meets a condition.
    func first(where isMeant: (Int32, Facts) -> Bool) -> Int32? {
        if self.number >= 0, isMeant(self.number, self.facts) { return self.number }
        let rest = self.rest
        return rest.first { isMeant($0.key, $0.value) }?.key
    }

    /// - Returns: what was known of it before.
    func setWatch(of socket: Int32, _ watch: Watch?) -> Watch? {
        self.bring(socket)
        let known = self.facts.watch
        self.facts.watch = watch
        self.idle += (watch?.isIdle == true ? 1 : 0) - (known?.isIdle == true ? 1 : 0)
        return known
    }

    /// Takes note of what a new socket is for.
    func note(_ socket: Int32, _ use: Use, isLoopback: Bool, identity: UInt64?) {
        self.bring(socket)
        self.count += (identity == nil ? 0 : 1) - (self.facts.identity == nil ? 0 : 1)
        self.others += (use == .others ? 1 : 0) - (self.facts.mayBeWrittenTo ? 1 : 0)
        self.facts.takesAnswersAlone = use == .answers
        self.facts.mayBeWrittenTo = use == .others
        self.facts.isLoopback = isLoopback
        self.facts.identity = identity
    }

    func setTakesAnswersAlone(_ socket: Int32, _ takesAnswersAlone: Bool) {
        self.bring(socket)
        self.facts.takesAnswersAlone = takesAnswersAlone
    }

    func setTrafficClass(of socket: Int32, _ trafficClass: UInt8?) {
        self.bring(socket)
        self.classed += (trafficClass == nil ? 0 : 1) - (self.facts.trafficClass == nil ? 0 : 1)
        self.facts.trafficClass = trafficClass
    }

    func forget(_ socket: Int32) {
        self.bring(socket)
        self.count -= self.facts.identity == nil ? 0 : 1
        self.idle -= self.facts.watch?.isIdle == true ? 1 : 0
        self.others -= self.facts.mayBeWrittenTo ? 1 : 0
        self.classed -= self.facts.trafficClass == nil ? 0 : 1
        self.facts = Facts()
        self.number = -1
    }

    /// Puts a socket at hand.
    private func bring(_ socket: Int32) {
        if socket != self.number { self.fetch(socket) }
    }

    private func fetch(_ socket: Int32) {
        var rest = exchange(&self.rest, with: [:])
        if self.number >= 0, !self.facts.isEmpty { rest[self.number] = self.facts }
        self.facts = rest.removeValue(forKey: socket) ?? Facts()
        self.number = socket
        self.rest = rest
    }
}
