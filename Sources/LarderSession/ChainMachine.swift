import LarderHTTP

/// The requests that one fetch may take, as a value: which of them is under way, and what becomes of
/// what is heard of it.
///
/// ```
///    ┌───────────────────────────────────────────┐ end, failure, too much, or too late
///    ▼                                           │
/// between ─ sends ─▶ sending ─ leads on ─▶ draining
///                      ├────── any other ─▶ relaying ─ end or failure ─▶ done
///                      └────── failure ────────────────────────────────▶ done
/// ```
///
/// Each request has a number; what is heard of an earlier one concerns nobody any more.
struct ChainMachine: ~Copyable {
    private enum State {
        /// Who was told to send the next request is about to: one alone, as time may run out on another
        /// thread than a response ends on.
        case between
        case sending
        /// The response is not the client's: the next request goes out when it is over, as long as
        /// no more than this comes.
        case draining(UInt64)
        case relaying
        case done
    }

    enum HeadAction: Equatable {
        case relay
        /// Lets the rest run off, so that the connection can be used again.
        case drain
        /// Breaks it off and goes on at once: the rest would cost more than a connection.
        case sendNext
        case discard
    }

    enum PieceAction: Equatable {
        case relay, swallow, sendNext, discard
    }

    enum EndAction: Equatable {
        case relay, sendNext, discard
    }

    /// How much of a response that nobody wants is let run off.
    static let drainLimit: UInt64 = 65_536
    /// How long it is waited for from its head on: a connection can be had for a round trip or a few.
    static let drainPatience = Duration.seconds(1)
    /// How many challenges of one target are answered; a server could else ask for ever.
    static let answerLimit = 4

    private var state = State.between
    private(set) var number = 0
    /// Challenges answered at the present target.
    private(set) var answers = 0

    /// A request goes out.
    ///
    /// - Returns: its number; nil where nobody wants it any more.
    mutating func sends() -> Int? {
        switch self.state {
        case .between:
            self.state = .sending
            self.number += 1
            return self.number
        case .sending, .draining, .relaying, .done: return nil
        }
    }

    /// Whether what is heard of a request concerns anybody.
    func isCurrent(_ number: Int) -> Bool {
        switch self.state {
        case .between, .done: false
        case .sending, .draining, .relaying: number == self.number
        }
    }

    /// Whether a request's response is on its way to be thrown away.
    func isDraining(_ number: Int) -> Bool {
        guard number == self.number, case .draining = self.state else { return false }
        return true
    }

    var mayAnswer: Bool { self.answers < Self.answerLimit }

    /// What a response leads to beside itself.
    enum Next: Equatable {
        case nothing, answer, redirection
    }

    mutating func headReceived(
        _ number: Int, leadsTo next: Next, bodyLength: BodyLength
    ) -> HeadAction {
        guard number == self.number, case .sending = self.state else { return .discard }
        switch next {
        case .nothing:
            self.state = .relaying
            return .relay
        case .answer: self.answers += 1
        case .redirection: self.answers = 0
        }
        if case .known(let length) = bodyLength, length > Self.drainLimit {
            self.state = .between
            return .sendNext
        }
        self.state = .draining(Self.drainLimit)
        return .drain
    }

    mutating func pieceReceived(_ number: Int, bytes: UInt64) -> PieceAction {
        guard number == self.number else { return .discard }
        switch self.state {
        case .relaying: return .relay
        case .draining(let left):
            guard bytes <= left else {
                self.state = .between
                return .sendNext
            }
            self.state = .draining(left - bytes)
            return .swallow
        case .between, .sending, .done: return .discard
        }
    }

    /// What was to run off has had its time.
    ///
    /// - Returns: whether it is broken off, and the next request sent.
    mutating func drainOverdue(_ number: Int) -> Bool {
        guard self.isDraining(number) else { return false }
        self.state = .between
        return true
    }

    /// A response is over, or will not go on.
    mutating func ended(_ number: Int) -> EndAction {
        guard number == self.number else { return .discard }
        switch self.state {
        case .sending, .relaying:
            self.state = .done
            return .relay
        case .draining:
            self.state = .between
            return .sendNext
        case .between, .done: return .discard
        }
    }

    mutating func cancel() {
        self.state = .done
    }
}
