/// The two directions of a tunnel, as a value (RFC 9110 §9.3.6).
///
/// Each side's input ends by itself: what the other side still sends goes on (half-close). The
/// tunnel is over when both have ended, or one side's connection is gone.
package struct TunnelState: ~Copyable {
    /// One end of a tunnel.
    package enum Side: Hashable, Sendable, CaseIterable {
        case client, origin

        package var other: Side { self == .client ? .origin : .client }
    }

    package enum Action: Hashable, Sendable {
        case nothing
        /// Send that side all it is owed, then end the sending side of its connection.
        case closeOutput(of: Side)
        /// Send both all they are owed, then close.
        case closeBoth
        /// Send that side all it is owed, then close it; the other is gone.
        case close(Side)
    }

    private var clientInputIsOpen = true
    private var originInputIsOpen = true
    private var isOver = false

    package init() {}

    package func takesInput(from side: Side) -> Bool {
        !self.isOver && (side == .client ? self.clientInputIsOpen : self.originInputIsOpen)
    }

    package mutating func inputEnded(from side: Side) -> Action {
        guard self.takesInput(from: side) else { return .nothing }
        switch side {
        case .client: self.clientInputIsOpen = false
        case .origin: self.originInputIsOpen = false
        }
        if self.takesInput(from: side.other) { return .closeOutput(of: side.other) }
        self.isOver = true
        return .closeBoth
    }

    /// A side's connection is gone, for whatever reason.
    package mutating func closed(_ side: Side) -> Action {
        guard !self.isOver else { return .nothing }
        self.isOver = true
        return .close(side.other)
    }
}
