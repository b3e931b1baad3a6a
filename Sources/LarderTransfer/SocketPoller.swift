import CCurl
import Glibc

/// The sockets of one loop: which of them libcurl waits for, and what they are used for.
///
/// A connection of HTTP/1 between two exchanges has nothing to say. libcurl 7.88 reads no more
/// than was announced, takes a connection with unread bytes for a living one, and would read them as
/// the answer to the next request. So when an exchange is over its socket is cut off where anything
/// lies unread in it; otherwise it stays in epoll while libcurl does not want it, and is cut off when
/// bytes come. It also spares two system calls an exchange.
///
/// Not `Sendable`: belongs to one loop.
final class SocketPoller {
    private let epoll: Epoll
    /// The number of the loop, by which events find back to it.
    private let owner: UInt32
    private let counters: TransferCounters
    private let sockets = SocketTable()
    /// Of which epoll says no more until `unhush` than that it is broken, whatever is wanted of it.
    private var hushed: Int32?

    init(_ epoll: Epoll, owner: UInt32, counters: TransferCounters) {
        self.epoll = epoll
        self.owner = owner
        self.counters = counters
    }

    /// How many sockets are open.
    var count: Int { self.sockets.count }

    /// How many connections are used, or being made.
    var used: Int { self.sockets.count - self.sockets.idle }

    // MARK: Sockets

    /// Makes a socket for libcurl (CURLOPT_OPENSOCKETFUNCTION(3)), or returns a negative number.
    ///
    /// - Parameter isLoopback: the peer runs on this machine.
    func open(
        _ address: curl_sockaddr, isPlain: Bool, isLoopback: Bool, trafficClass: UInt8?
    ) -> Int32 {
        let socket = socket(
            address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
        guard socket >= 0 else { return ccurl_socket_bad }
        self.counters.socketOpened()
        self.setWatch(socket, nil)
        self.note(socket, isPlain: isPlain, isLoopback: isLoopback)
        self.sockets.setTrafficClass(of: socket, nil)
        if trafficClass != nil { self.mark(socket, trafficClass) }
        return socket
    }

    /// Takes note of what a new socket is for.
    func note(_ socket: Int32, isPlain: Bool, isLoopback: Bool = false) {
        self.sockets.note(
            socket, isPlain ? .answers : .others, isLoopback: isLoopback,
            identity: Self.identity(of: socket))
    }

    /// Gives the packets of a socket a traffic class (ip(7), ipv6(7)); nil: the system's.
    ///
    /// A kernel that refuses is no reason to fail: the class is a wish.
    func mark(_ socket: Int32, _ trafficClass: UInt8?) {
        guard self.sockets[socket].trafficClass != trafficClass else { return }
        self.sockets.setTrafficClass(of: socket, trafficClass)
        // The two bits behind the DSCP are ECN's, which the kernel keeps for itself.
        var value = Int32((trafficClass ?? 0) & 0x3F) << 2
        let size = socklen_t(MemoryLayout<Int32>.size)
        _ = unsafe setsockopt(socket, Int32(IPPROTO_IP), IP_TOS, &value, size)
        _ = unsafe setsockopt(socket, Int32(IPPROTO_IPV6), IPV6_TCLASS, &value, size)
    }

    /// Whether any socket has a class that a request without one must not inherit.
    var hasClasses: Bool { self.sockets.classed > 0 }

    /// Closes a socket for libcurl (CURLOPT_CLOSESOCKETFUNCTION(3)).
    func close(_ socket: Int32) -> Int32 {
        self.forget(socket)
        return Glibc.close(socket)
    }

    /// A socket is closed, or is about to be: epoll forgets it by itself.
    private func forget(_ socket: Int32) {
        self.counters.socketClosed()
        self.sockets.forget(socket)
        if socket == self.hushed { self.hushed = nil }
    }

    /// Whether a number that was noted does not lead to the socket any more that it was noted for.
    private func isLost(_ socket: Int32) -> Bool {
        guard let identity = self.sockets[socket].identity else { return false }
        return Self.identity(of: socket) != identity
    }

    private static func identity(of socket: Int32) -> UInt64? {
        var status = stat()
        return unsafe fstat(socket, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    /// Makes a second descriptor of a socket for somebody else, and forgets the socket; nil where the
    /// kernel has none to give.
    ///
    /// epoll(7): "a file descriptor is removed from an interest list only after all the file
    /// descriptors referring to the underlying open file description have been closed", which
    /// libcurl's close will not be.
    func handOver(_ socket: Int32) -> Int32? {
        self.sockets.setTakesAnswersAlone(socket, false)
        self.unwatch(socket)
        let own = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        return own >= 0 ? own : nil
    }

    // MARK: Readiness

    /// Does what the socket callback asks (CURLMOPT_SOCKETFUNCTION(3)); false when epoll cannot.
    ///
    /// What is wanted no more always succeeds, also of a socket that has been closed already: libcurl
    /// closes one that is being connected to behind our back (`cf_socket_close` of 7.88), and another
    /// thread may have its number by now. Of such a one it wanted to know no more than whether it can
    /// be written to.
    ///
    /// - Parameters:
    ///   - isHeld: the transfer that uses the socket stands still because its receiver does.
    ///   - isHTTP1: it was answered in HTTP/1.
    func watch(_ socket: Int32, _ what: Int32, isHeld: Bool, isHTTP1: Bool) -> Bool {
        if what == CURL_POLL_REMOVE {
            if isHTTP1, self.sockets[socket].mayBeWrittenTo {
                self.sockets.setTakesAnswersAlone(socket, true)
            }
            let known = self.watch(socket)
            if known?.hasRead == false, self.isLost(socket) {
                self.forget(socket)
                return true
            }
            if isHeld || known == nil || !self.rests(socket) { self.unwatch(socket) }
            return true
        }
        var events: UInt32 = 0
        if what & CURL_POLL_IN != 0 { events |= EPOLLIN.rawValue }
        if what & CURL_POLL_OUT != 0 { events |= EPOLLOUT.rawValue }
        let hasRead = what & CURL_POLL_IN != 0 || self.watch(socket)?.hasRead == true
        return self.register(socket, SocketTable.Watch(events: events, hasRead: hasRead))
    }

    /// The exchange is over that stood still when libcurl wanted no more of the socket: libcurl reads
    /// what is left without waiting for the socket again, and says nothing of it.
    func exchangeEnded(on socket: Int32) {
        // Where the connection ended with it, the number may be another's by now.
        guard self.watch(socket) == nil, !self.isLost(socket) else { return }
        _ = self.rests(socket)
    }

    /// An exchange has begun on a socket of which libcurl wants nothing now: if it lay idle it is not
    /// watched any more.
    ///
    /// - Returns: the socket; nil where it is none of those that may be idle, or is watched for libcurl.
    func takeUnwanted(_ ends: ConnectionEnds) -> Int32? {
        let found = self.sockets.first { socket, facts in
            facts.takesAnswersAlone && facts.watch?.isIdle != false
                && ConnectionEnds(of: socket) == ends
        }
        guard let socket = found else { return nil }
        self.unwatch(socket)
        return socket
    }

    /// Has a socket watched until the next exchange begins on it, or cuts it off, where bytes lie in
    /// it that nobody asked for; false where it is neither to be watched nor cut off, or cannot be.
    private func rests(_ socket: Int32) -> Bool {
        guard self.sockets[socket].takesAnswersAlone else { return false }
        // Not left to epoll: the next request may go out before its next word.
        if socket != self.hushed, self.isCutOffForBytes(socket) { return false }
        return self.register(
            socket, SocketTable.Watch(events: EPOLLIN.rawValue, hasRead: true, isIdle: true))
    }

    /// Cuts a socket off where bytes lie unread in it; whether they did.
    private func isCutOffForBytes(_ socket: Int32) -> Bool {
        guard case .bytes = Self.unread(socket) else { return false }
        self.cutOff(socket)
        return true
    }

    private enum Unread {
        case nothing, bytes
        /// The end of the connection, or an error.
        case end
    }

    private static func unread(_ socket: Int32) -> Unread {
        var byte: UInt8 = 0
        let flags = Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)
        let count = unsafe recv(socket, &byte, 1, flags)
        if count > 0 { return .bytes }
        return count < 0 && errno == EAGAIN ? .nothing : .end
    }

    /// Whether libcurl, or this, waits for anything on a socket: an event of one that does not may
    /// have been on its way when it was closed.
    func isWatched(_ socket: Int32) -> Bool { self.watch(socket) != nil }

    /// Whether no socket is for anything but plain HTTP/1.1.
    var isPlain: Bool { self.sockets.others == 0 }

    /// Whether there is a plain connection between two exchanges.
    var hasIdleSockets: Bool { self.sockets.idle > 0 }

    /// Whether the only idle connection is hushed, and nothing has come on it.
    ///
    /// Bytes that nobody asked for cut it off here: epoll did not tell of them.
    func liesStill() -> Bool {
        guard self.isHushedIdle, let socket = self.hushed else { return false }
        switch Self.unread(socket) {
        case .nothing: return true
        case .bytes: self.cutOff(socket)
        // libcurl will see that for itself before it uses the connection again.
        case .end: break
        }
        self.unwatch(socket)
        return false
    }

    /// Has epoll say nothing of bytes that come on the only idle connection, until `unhush`.
    ///
    /// For guests, who have just seen that nothing lies unread in it: the answer to what they send would
    /// wake the loop's thread, only to have it wait for them. It may stay so from guest to guest, which
    /// spares each of them two system calls: epoll still tells of its end (EPOLLRDHUP), and who is next
    /// to use it looks for bytes first (`liesStill`, `unhush`).
    ///
    /// - Returns: whether there is one; false where there are several, as which of them a request will go
    ///   out on is not known.
    func hush() -> Bool {
        if self.hushed != nil { return self.isHushedIdle }
        guard self.sockets.idle == 1,
            let idle = self.sockets.first(where: { $1.watch?.isIdle == true }),
            self.control(EPOLL_CTL_MOD, idle, EPOLLRDHUP.rawValue) == 0
        else { return false }
        self.hushed = idle
        return true
    }

    /// Whether the hushed connection lies idle, and may stay as it is.
    var isHushedIdle: Bool {
        guard self.sockets.idle == 1, let hushed = self.hushed else { return false }
        return self.watch(hushed)?.isIdle == true
    }

    /// Has epoll look again at the connection that was hushed, for what is wanted of it by now.
    func unhush() {
        guard let socket = exchange(&self.hushed, with: nil), let watch = self.watch(socket) else {
            return
        }
        // It was not used, or its exchange is over already.
        if watch.isIdle, self.isCutOffForBytes(socket) { return self.unwatch(socket) }
        if self.control(EPOLL_CTL_MOD, socket, watch.events) != 0 { self.setWatch(socket, nil) }
    }

    /// The hushed connection, where libcurl waits for an answer on it, from a peer on this machine.
    var hushedWait: Int32? {
        guard let socket = self.hushed else { return nil }
        let facts = self.sockets[socket]
        guard facts.isLoopback, let watch = facts.watch, !watch.isIdle,
            watch.events == EPOLLIN.rawValue
        else { return nil }
        return socket
    }

    /// Sees to a socket that libcurl wants nothing of; false when it is not one.
    ///
    /// Asked for each event at its turn: what an earlier one led to may have put the socket to use.
    func sawIdle(_ socket: Int32) -> Bool {
        guard let watch = self.watch(socket), watch.isIdle else { return false }
        switch Self.unread(socket) {
        // The answer to a request that has gone out and come back between the event and its turn.
        case .nothing: return true
        case .bytes: self.cutOff(socket)
        // libcurl will see that for itself before it uses the connection again.
        case .end: break
        }
        self.unwatch(socket)
        return true
    }

    /// Ends a connection together with the bytes that lie unread in it, but leaves its descriptor,
    /// which is libcurl's: it finds it dead and closes it.
    ///
    /// connect(2): "Some protocol sockets … may dissolve the association by connecting to an
    /// address with the sa_family member of sockaddr set to AF_UNSPEC."
    private func cutOff(_ socket: Int32) {
        var address = sockaddr()
        address.sa_family = sa_family_t(AF_UNSPEC)
        _ = unsafe connect(socket, &address, socklen_t(MemoryLayout<sockaddr>.size))
        // Fails, and has the socket be at its end all the same: one that only fails libcurl 7.88 takes
        // for a living one (`cf_socket_conn_is_alive`), and sends the next request, and the one after.
        // If connect(2) did nothing it is the least: no request can be sent on it.
        _ = shutdown(socket, Int32(SHUT_RDWR))
        var error: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        // The next to read would be told of it, and not of the end.
        _ = unsafe getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size)
    }

    private func register(_ socket: Int32, _ watch: SocketTable.Watch) -> Bool {
        let known = self.setWatch(socket, watch)
        if known?.events == watch.events || socket == self.hushed { return true }
        let operation = known == nil ? EPOLL_CTL_ADD : EPOLL_CTL_MOD
        if self.control(operation, socket, watch.events) == 0 { return true }
        // A number can come back for another socket before libcurl said that the first is gone.
        switch (operation, errno) {
        case (EPOLL_CTL_ADD, EEXIST):
            return self.control(EPOLL_CTL_MOD, socket, watch.events) == 0
        case (EPOLL_CTL_MOD, ENOENT):
            return self.control(EPOLL_CTL_ADD, socket, watch.events) == 0
        default:
            self.setWatch(socket, nil)
            return false
        }
    }

    private func watch(_ socket: Int32) -> SocketTable.Watch? { self.sockets[socket].watch }

    /// - Returns: what was known of the socket before.
    @discardableResult
    private func setWatch(_ socket: Int32, _ watch: SocketTable.Watch?) -> SocketTable.Watch? {
        if watch == nil, socket == self.hushed { self.hushed = nil }
        return self.sockets.setWatch(of: socket, watch)
    }

    private func unwatch(_ socket: Int32) {
        guard self.setWatch(socket, nil) != nil else { return }
        // Fails where the socket has been closed already, and then epoll has forgotten it.
        _ = self.control(EPOLL_CTL_DEL, socket, 0)
    }

    private func control(_ operation: Int32, _ socket: Int32, _ events: UInt32) -> Int32 {
        self.epoll.control(operation, socket, events, owner: self.owner)
    }
}
