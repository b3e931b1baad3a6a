import NIOCore

/// Makes room for new connections that find no place.
///
/// ```
/// connections that wait for a further request ─▶ those that owe a head for too long ─▶ once more, when
///                                                                the next of these has had its time
/// ```
///
/// Loop after loop, on each loop's own thread. Who is slow with a head keeps nobody out who is not.
struct RoomMaking: Sendable {
    typealias Loops = ArraySlice<NIOLoopBoundBox<LoopState>>

    let loops: [NIOLoopBoundBox<LoopState>]
    let count: ConnectionCount

    func begin(for places: Int) {
        self.closeIdle(places, self.loops[...])
    }

    private func closeIdle(_ places: Int, _ loops: Loops) {
        guard places > 0 else { return }
        guard let loop = loops.first else {
            return self.closeLate(places, self.loops[...], next: nil)
        }
        loop.eventLoop.execute {
            let closed = loop.value.closeIdle(limit: places)
            self.closeIdle(places - closed, loops.dropFirst())
        }
    }

    /// - Parameter next: when another one will have had its time.
    private func closeLate(_ places: Int, _ loops: Loops, next: NIODeadline?) {
        guard places > 0 else { return }
        guard let loop = loops.first else { return self.wait(for: places, until: next) }
        loop.eventLoop.execute {
            let (closed, coming) = loop.value.closeLate(limit: places, at: .now())
            let next = [next, coming].compactMap(\.self).min()
            self.closeLate(places - closed, loops.dropFirst(), next: next)
        }
    }

    private func wait(for places: Int, until next: NIODeadline?) {
        guard let next, let loop = self.loops.first else {
            return self.count.foundNoRoom(for: places)
        }
        loop.eventLoop.scheduleTask(deadline: next) {
            // Whoever left meanwhile has given a place.
            let left = min(places, self.count.asked)
            if self.count.isCrowded { return self.begin(for: left) }
            self.count.foundNoRoom(for: left)
        }
    }
}

/// Which connections give way that owe the head of a request.
///
/// Those that owe it for longest, once they have had some time for it. A value: the moments are given.
struct LateHeads {
    /// Places in the list of those that were given, the one that owes for longest first.
    let late: [Int]
    /// When the next one will be late, where none is left that is.
    let next: NIODeadline?

    /// - Parameters:
    ///   - since: when each began to owe it.
    ///   - limit: how many are to give way.
    init(
        since: [NIODeadline], limit: Int, grace: TimeAmount, at now: NIODeadline
    ) {
        let order = since.indices.sorted { since[$0] < since[$1] }
        let late = order.prefix { since[$0] + grace <= now }
        self.late = Array(late.prefix(limit))
        self.next =
            late.count < limit ? order.dropFirst(late.count).first.map { since[$0] + grace } : nil
    }
}

extension LoopState {
    /// Closes up to so many connections that owe a head for too long.
    ///
    /// - Returns: how many there were, and when another one will have had its time.
    func closeLate(limit: Int, at now: NIODeadline) -> (closed: Int, next: NIODeadline?) {
        let owing = self.connections.values.compactMap { connection in
            connection.owesHeadSince.map { (connection, $0) }
        }
        let heads = LateHeads(
            since: owing.map(\.1), limit: limit,
            grace: .nanoseconds(self.shared.configuration.headGrace.inNanoseconds), at: now)
        for index in heads.late { owing[index].0.giveWay() }
        return (heads.late.count, heads.next)
    }
}

extension ClientConnection {
    /// Since when it owes a head: from its first byte on, or of a first request since it is open; nil
    /// where it owes none.
    fileprivate var owesHeadSince: NIODeadline? {
        let wait = self.timer.wait
        guard wait == .head || (wait == .request && self.state.exchangeNumber == 0),
            let deadline = self.timer.deadline, let time = self.shared.waits.time(for: wait)
        else { return nil }
        return deadline - time
    }
}
