/// The life of a client's connection, as a value: events go in, what to do comes out.
///
/// ```
/// awaitingHead ──bytes──▶ receivingHead ──head──▶ exchanging ──┬──▶ awaitingHead …
///                                                     │         ├──▶ lingering ──▶ closed
///                                                     ▼         └──▶ closed
///                                                tunnelling ──▶ closed
/// ```
///
/// One request is worked on at a time; what a client sends ahead waits unread (RFC 9112 §9.3.2).
/// Request content and response overlap: each has its own progress inside `exchanging`. While a
/// client's credentials are judged, what lies behind the head is held, be it content or another
/// request.
package struct ClientConnectionState: ~Copyable {
    private enum RequestProgress: Hashable {
        /// Not to be looked at before the client is known.
        case held(hasContent: Bool)
        case receiving, discarding, whole
    }

    private enum ResponseProgress: Hashable { case awaited, sending, sent }

    private struct Exchanging: Hashable {
        var request: RequestProgress
        var response: ResponseProgress
    }

    private enum Phase: Hashable {
        case awaitingHead
        case receivingHead
        case exchanging(Exchanging)
        case tunnelling
        case lingering
        case closed
    }

    private var phase = Phase.awaitingHead
    private var inputIsOpen = true
    /// Whether another request may follow the one at work.
    private var persists = true
    /// The request at work asks for a tunnel.
    private var wantsTunnel = false
    /// The number of the exchange at work, or of the last; no two of a connection are the same.
    package private(set) var exchangeNumber: UInt64 = 0

    package init() {}

    package var reading: Reading {
        switch self.phase {
        case .awaitingHead, .receivingHead: self.persists ? .head : .nothing
        case .exchanging(let exchange):
            switch exchange.request {
            case .receiving: .content
            case .discarding: .discarded
            case .whole, .held: .nothing
            }
        case .tunnelling: .tunnel
        case .lingering: .discarded
        case .closed: .nothing
        }
    }

    /// No request has begun and none is being answered.
    package var isIdle: Bool { self.phase == .awaitingHead }
    package var isClosed: Bool { self.phase == .closed }
    package var isLingering: Bool { self.phase == .lingering }
    package var isReceivingHead: Bool { self.phase == .receivingHead }
    /// Input has not ended, as far as is known.
    package var takesInput: Bool { self.inputIsOpen && self.phase != .closed }

    /// A request is at work and its answer has not begun.
    package var awaitsAnswer: Bool {
        self.response == .awaited
    }

    /// An answer is being sent.
    package var isSending: Bool {
        self.response == .sending
    }

    private var response: ResponseProgress? {
        if case .exchanging(let exchange) = self.phase { exchange.response } else { nil }
    }

    /// Content of the request at work has still to come.
    package var awaitsContent: Bool {
        guard case .exchanging(let exchange) = self.phase else { return false }
        return exchange.request == .receiving || exchange.request == .discarding
    }
}

// MARK: Events of the request

extension ClientConnectionState {
    /// Bytes of a head are there, but not all of it.
    package mutating func headBegan() {
        if self.phase == .awaitingHead { self.phase = .receivingHead }
    }

    /// A whole head, or one that cannot be read, was taken off the connection.
    ///
    /// A request for a tunnel is the last of its connection: what a client sends behind it is for the
    /// tunnel's other end, and where there is none it must not be taken for a request (RFC 9931).
    ///
    /// - Parameter persists: whether the request lets another one follow.
    /// - Returns: the exchange's number.
    package mutating func headEnded(
        hasContent: Bool, persists: Bool, wantsTunnel: Bool = false
    ) -> UInt64 {
        self.exchangeNumber &+= 1
        self.persists = self.persists && persists && !wantsTunnel
        self.wantsTunnel = wantsTunnel
        self.phase = .exchanging(
            Exchanging(request: hasContent ? .receiving : .whole, response: .awaited))
        return self.exchangeNumber
    }

    /// Nothing behind the head may be looked at until its client is known.
    package mutating func contentHeld() {
        guard case .exchanging(var exchange) = self.phase, exchange.response == .awaited else {
            return
        }
        exchange.request = .held(hasContent: exchange.request == .receiving)
        self.phase = .exchanging(exchange)
    }

    /// The client is known, or known to be refused.
    ///
    /// - Returns: whether anything was held; false where the exchange has ended meanwhile.
    package mutating func contentReleased() -> Bool {
        guard case .exchanging(var exchange) = self.phase,
            case .held(let hasContent) = exchange.request
        else { return false }
        exchange.request = hasContent ? .receiving : .whole
        self.phase = .exchanging(exchange)
        return true
    }

    /// The last byte of the request's content was taken off the connection.
    package mutating func contentEnded() -> Action {
        guard case .exchanging(var exchange) = self.phase else { return .nothing }
        exchange.request = .whole
        self.phase = .exchanging(exchange)
        return exchange.response == .sent ? self.exchangeEnded(moreInputMayCome: false) : .nothing
    }

    /// Nobody wants the rest of the request's content.
    package mutating func contentAbandoned() {
        guard case .exchanging(var exchange) = self.phase, exchange.request == .receiving else {
            return
        }
        exchange.request = .discarding
        self.phase = .exchanging(exchange)
    }

    /// More content of an answered request comes than is worth taking to keep the connection.
    package mutating func discardingEnded() -> Action {
        guard case .exchanging(let exchange) = self.phase, exchange.response == .sent else {
            return .nothing
        }
        self.persists = false
        return self.exchangeEnded(moreInputMayCome: true)
    }

    /// The request's content broke its framing, so that the next request cannot be found.
    ///
    /// Nothing more is taken of it: behind an answer that is out the connection ends, as no other event
    /// would end it.
    package mutating func contentBroke() -> Action {
        self.persists = false
        self.contentAbandoned()
        return self.discardingEnded()
    }
}

// MARK: Events of the response

extension ClientConnectionState {
    /// The final answer's head is about to be written.
    ///
    /// - Parameters:
    ///   - mayPersist: whether the answer's own framing, and what is still to come of the request,
    ///     let another request follow.
    ///   - hasUnread: whether bytes lie unread behind the request.
    /// - Returns: whether the connection stays open after it: what `Connection` has to say.
    package mutating func responseBegan(mayPersist: Bool, hasUnread: Bool) -> Bool {
        guard case .exchanging(var exchange) = self.phase else { return false }
        exchange.response = .sending
        self.phase = .exchanging(exchange)
        self.persists = self.persists && mayPersist && (self.inputIsOpen || hasUnread)
        return self.persists
    }

    /// The answer's last byte was handed to the connection.
    ///
    /// - Parameter hasUnread: whether bytes lie unread behind the request.
    package mutating func responseEnded(hasUnread: Bool) -> Action {
        guard case .exchanging(var exchange) = self.phase else { return .nothing }
        exchange.response = .sent
        // Content that was sent ahead of the end of input is thrown away like any other: taken for
        // a request, it would be acted on.
        if exchange.request != .whole, self.persists, self.inputIsOpen || hasUnread {
            exchange.request = .discarding
            self.phase = .exchanging(exchange)
            return .discardContent
        }
        return self.exchangeEnded(moreInputMayCome: exchange.request != .whole || hasUnread)
    }

    private mutating func exchangeEnded(moreInputMayCome: Bool) -> Action {
        if self.persists {
            self.phase = .awaitingHead
            return .readHead
        }
        if moreInputMayCome || self.wantsTunnel, self.inputIsOpen {
            self.phase = .lingering
            return .linger
        }
        self.phase = .closed
        return .close
    }

    /// The connection became a tunnel: HTTP ends here.
    package mutating func tunnelBegan() {
        self.persists = false
        self.phase = .tunnelling
    }
}

// MARK: Events of the connection

extension ClientConnectionState {
    /// The client sends nothing more; it may still read.
    package mutating func inputEnded() -> Action {
        self.inputIsOpen = false
        switch self.phase {
        case .awaitingHead, .receivingHead:
            // Whole requests may lie unread, sent ahead of the end: they get their answers.
            return .readHead
        case .lingering:
            self.phase = .closed
            return .close
        case .exchanging(let exchange):
            switch exchange.request {
            case .whole, .held: return .nothing
            // All of the content may lie unread, sent ahead of the end: it is incomplete only where
            // bytes are missing (RFC 9112 §8).
            case .receiving: return .readHead
            case .discarding:
                if exchange.response == .sent {
                    self.phase = .closed
                    return .close
                }
                self.persists = false
                return .nothing
            }
        case .tunnelling, .closed:
            return .nothing
        }
    }

    /// Input has ended and what was left of it holds no whole request.
    package mutating func inputExhausted() -> Action {
        switch self.phase {
        case .awaitingHead, .receivingHead:
            self.phase = .closed
            return .close
        case .exchanging, .tunnelling, .lingering, .closed:
            return .nothing
        }
    }

    /// The proxy is shutting down: no further request is taken.
    package mutating func drain() -> Action {
        self.persists = false
        switch self.phase {
        case .awaitingHead:
            self.phase = .closed
            return .close
        case .receivingHead:
            // Nothing of it was acted on: the client may send it elsewhere.
            self.phase = .closed
            return .close
        case .exchanging(let exchange):
            if exchange.response == .sent {
                self.phase = .lingering
                return .linger
            }
            return .nothing
        case .tunnelling, .lingering, .closed:
            return .nothing
        }
    }

    /// The time given to what the client owes has passed.
    package mutating func deadlinePassed() -> Action {
        switch self.phase {
        case .receivingHead:
            return .answerTimeout
        case .exchanging(let exchange):
            switch (exchange.request, exchange.response) {
            case (.receiving, .awaited): return .answerTimeout
            case (_, .sending), (_, .sent), (_, .awaited):
                self.phase = .closed
                return .abort
            }
        case .awaitingHead, .tunnelling, .lingering:
            self.phase = .closed
            return .close
        case .closed:
            return .nothing
        }
    }

    /// The connection is no more, or is about to be cut.
    ///
    /// - Returns: whether an exchange was at work, which has to be cancelled.
    package mutating func connectionEnded() -> Bool {
        defer { self.phase = .closed }
        self.inputIsOpen = false
        if case .exchanging(let exchange) = self.phase { return exchange.response != .sent }
        return false
    }
}
