import NIOCore

/// The pipes of one event loop: as many as are in use at a time, up to a bound.
///
/// A tunnel needs one while it moves bytes, and has it for longer only where a target does not take
/// them; a body needs one while it is sent. Who gets none, copies. Confined to the loop.
final class SplicePipes {
    /// What a pipe is wanted for.
    enum Use {
        case tunnel
        /// Given back at once: one more than tunnels may have is there for it.
        case body
    }

    /// Further ones are closed when they come back: pages that wait in them are others' to have.
    static let mostIdle = 8
    /// How long nothing is asked of a system that has refused: to ask costs five calls of it.
    static let refusalTime = TimeAmount.seconds(5)

    private let most: Int
    private let open: () -> SplicePipe?
    private var idle: [SplicePipe] = []
    private var refusedAt: NIODeadline?
    /// How many are in use.
    private(set) var lent = 0

    /// - Parameter most: for tunnels.
    init(most: Int, open: @escaping () -> SplicePipe? = { SplicePipe() }) {
        self.most = most
        self.open = open
    }

    /// What one of several loops may have of a number for all; where there are any, one at least.
    static func share(of all: Int, loops: Int) -> Int {
        all > 0 ? max(1, all / max(1, loops)) : 0
    }

    /// How many there are, in use or waiting here.
    var count: Int { self.lent + self.idle.count }

    /// Nil where all are in use, or none is to be had.
    ///
    /// - Parameter now: asked for only where a pipe has to be opened.
    func borrow(
        for use: Use = .tunnel, at now: @autoclosure () -> NIODeadline = .now()
    ) -> SplicePipe? {
        guard self.lent < (use == .tunnel ? self.most : self.most + 1),
            let pipe = self.takeIdle() ?? self.opened(at: now())
        else { return nil }
        self.lent += 1
        return pipe
    }

    private func takeIdle() -> SplicePipe? {
        var idle = exchange(&self.idle, with: [])
        defer { self.idle = idle }
        return idle.popLast()
    }

    private func opened(at now: NIODeadline) -> SplicePipe? {
        if let refused = self.refusedAt, now < refused + Self.refusalTime { return nil }
        let pipe = self.open()
        self.refusedAt = pipe == nil ? now : nil
        return pipe
    }

    /// Takes a pipe back; what still lies in it is thrown away with it.
    func giveBack(_ pipe: SplicePipe) {
        self.lent -= 1
        guard pipe.held == 0, self.idle.count < Self.mostIdle else { return }
        var idle = exchange(&self.idle, with: [])
        idle.append(pipe)
        self.idle = idle
    }
}
