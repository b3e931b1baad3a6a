import NIOCore

/// Which names are looked for, which wait for a thread, and who waits for them.
///
/// ```
/// ask ─▶ waiting, in the line of each client that asks ─▶ begun ─▶ ended
///   └──────────(a thread is free for the client)───────────▲
/// ```
///
/// A value: who asks, who leaves and what has ended go in, what is to be begun comes out. Clients take
/// turns, and none has more threads than twice as many as are left: one alone has two thirds of them, so
/// that another one's first name begins at once, however many names are slow. So it is with the places
/// of those that wait.
struct NameQueue {
    struct Limits {
        /// Look-ups at one time.
        var threads = 64
        /// Names that may wait for one, counted for each client that waits for them.
        var queued = 1_024
        /// For so long a name is not looked for again that took too long.
        var silence = TimeAmount.seconds(5)
    }

    enum Verdict: Equatable {
        case begin, wait
        /// Too many wait.
        case refuse
        /// It took too long a moment ago.
        case timedOut
    }

    struct Ending: Equatable {
        /// Who waited for the name.
        var waiters: [UInt64] = []
        /// The names to be looked for now.
        var next: [String] = []
    }

    private struct Waiter {
        let client: ClientSource
        let since: NIODeadline
    }

    private struct Asked {
        var waiters: [UInt64: Waiter] = [:]
        /// For whom it was begun, and when; nil while it waits.
        var begun: Waiter?
    }

    private struct Line {
        var running = 0
        var names: [String] = []
    }

    /// Beyond so many, names that took too long are not remembered.
    private static let mostRemembered = 1_024

    private let limits: Limits
    private var names: [String: Asked] = [:]
    private var lines: [ClientSource: Line] = [:]
    /// Those in whose lines names wait, the next one first.
    private var turns: [ClientSource] = []
    private var running = 0
    private var queued = 0
    private var silent: [String: NIODeadline] = [:]

    init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    /// How many wait for a name.
    var waiting: Int { self.names.values.reduce(0) { $0 + $1.waiters.count } }

    /// - Parameter waiter: a number of its own; it waits from now on where the verdict is `begin` or
    ///   `wait`.
    mutating func ask(
        _ name: String, _ waiter: UInt64, for client: ClientSource, _ now: NIODeadline
    ) -> Verdict {
        if let until = self.silent[name] {
            if now < until { return .timedOut }
            self.silent[name] = nil
        }
        let asked = self.names[name]
        let own = Waiter(client: client, since: now)
        let isInLine = asked?.waiters.values.contains { $0.client == client } == true
        if asked?.begun != nil || isInLine {
            self.names[name]?.waiters[waiter] = own
            return .wait
        }
        if self.mayBegin(client) {
            self.names[name, default: Asked()].waiters[waiter] = own
            self.begin(name, for: client, now)
            return .begin
        }
        let line = self.lines[client]?.names.count ?? 0
        guard self.queued < self.limits.queued, line < 2 * (self.limits.queued - self.queued) else {
            return .refuse
        }
        self.names[name, default: Asked()].waiters[waiter] = own
        self.lines[client, default: Line()].names.append(name)
        self.queued += 1
        if line == 0 { self.turns.append(client) }
        return .wait
    }

    /// Somebody does not want to know any more.
    ///
    /// What is being looked for goes on: whoever asks next may have use for it.
    ///
    /// - Parameter hasTimedOut: because it took too long, which is remembered of a name that was looked
    ///   for all the time.
    mutating func leave(
        _ name: String, _ waiter: UInt64, hasTimedOut: Bool, _ now: NIODeadline
    ) {
        guard let left = self.names[name]?.waiters.removeValue(forKey: waiter),
            let asked = self.names[name]
        else { return }
        if let begun = asked.begun {
            if hasTimedOut, begun.since <= left.since { self.remember(name, now) }
            return
        }
        if !asked.waiters.values.contains(where: { $0.client == left.client }) {
            self.takeOut(name, from: left.client)
        }
        if asked.waiters.isEmpty { self.names[name] = nil }
    }

    /// A look-up has ended; its thread is free.
    mutating func ended(_ name: String, isFound: Bool, _ now: NIODeadline) -> Ending {
        if isFound { self.silent[name] = nil }
        let waiters = self.release(name)
        return Ending(waiters: waiters, next: self.admit(now))
    }

    /// There is no thread for a name that was to be begun.
    ///
    /// Those that run go on with what waits; without one nobody would come for it.
    ///
    /// - Returns: who waits in vain.
    mutating func threadFailed(_ name: String) -> [UInt64] {
        let waiters = self.release(name)
        guard self.running == 0 else { return waiters }
        let rest = self.names.values.flatMap { Array($0.waiters.keys) }
        self.names = [:]
        self.lines = [:]
        self.turns = []
        self.queued = 0
        return waiters + rest
    }

    // MARK: Steps

    private func mayBegin(_ client: ClientSource) -> Bool {
        let free = self.limits.threads - self.running
        return free > 0 && (self.lines[client]?.running ?? 0) < 2 * free
    }

    private mutating func begin(_ name: String, for client: ClientSource, _ now: NIODeadline) {
        let clients = self.names[name].map { Set($0.waiters.values.map(\.client)) } ?? []
        for client in clients { self.takeOut(name, from: client) }
        self.names[name]?.begun = Waiter(client: client, since: now)
        self.lines[client, default: Line()].running += 1
        self.running += 1
    }

    /// Has the clients that wait take turns, as long as there is a thread for any.
    private mutating func admit(_ now: NIODeadline) -> [String] {
        var admitted: [String] = []
        while let client = self.turns.first(where: { self.mayBegin($0) }),
            let name = self.lines[client]?.names.first
        {
            self.begin(name, for: client, now)
            admitted.append(name)
            if let place = self.turns.firstIndex(of: client) {
                self.turns.append(self.turns.remove(at: place))
            }
        }
        return admitted
    }

    private mutating func release(_ name: String) -> [UInt64] {
        guard let asked = self.names.removeValue(forKey: name), let begun = asked.begun else {
            preconditionFailure("a look-up ended that was never begun")
        }
        self.running -= 1
        self.lines[begun.client]?.running -= 1
        self.forgetIfIdle(begun.client)
        return asked.waiters.keys.sorted()
    }

    private mutating func takeOut(_ name: String, from client: ClientSource) {
        guard let place = self.lines[client]?.names.firstIndex(of: name) else { return }
        self.lines[client]?.names.remove(at: place)
        self.queued -= 1
        guard self.lines[client]?.names.isEmpty == true else { return }
        self.turns.removeAll { $0 == client }
        self.forgetIfIdle(client)
    }

    private mutating func forgetIfIdle(_ client: ClientSource) {
        guard let line = self.lines[client], line.running == 0, line.names.isEmpty else { return }
        self.lines[client] = nil
    }

    private mutating func remember(_ name: String, _ now: NIODeadline) {
        if self.silent.count >= Self.mostRemembered {
            self.silent = self.silent.filter { $0.value > now }
        }
        guard self.silent.count < Self.mostRemembered else { return }
        self.silent[name] = now + self.limits.silence
    }
}
