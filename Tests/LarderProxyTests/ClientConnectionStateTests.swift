import Testing

@testable import LarderProxy

@Suite("The life of a client's connection (RFC 9112 §9)")
struct ClientConnectionStateTests {
    /// What happens to a connection, one after the other, and the action of the last event.
    enum Step: Sendable {
        case headBegan
        case head(content: Bool = false, persists: Bool = true, tunnel: Bool = false)
        case held, released
        case contentEnded, contentAbandoned, contentBroke
        case answer(mayPersist: Bool = true, unread: Bool = false)
        case answered(unread: Bool = false)
        case discardingEnded, tunnel, inputEnded, inputExhausted, drain, deadline
    }

    struct Case: Sendable {
        let steps: [Step]
        let action: ClientConnectionState.Action
        let reading: ClientConnectionState.Reading

        init(
            _ steps: [Step], _ action: ClientConnectionState.Action,
            _ reading: ClientConnectionState.Reading
        ) {
            self.steps = steps
            self.action = action
            self.reading = reading
        }
    }

    static func take(
        _ step: Step, _ state: inout ClientConnectionState
    ) -> ClientConnectionState.Action {
        switch step {
        case .headBegan: state.headBegan()
        case .head(let content, let persists, let tunnel):
            _ = state.headEnded(hasContent: content, persists: persists, wantsTunnel: tunnel)
        case .held: state.contentHeld()
        case .released: _ = state.contentReleased()
        case .contentEnded: return state.contentEnded()
        case .contentAbandoned: state.contentAbandoned()
        case .contentBroke: return state.contentBroke()
        case .answer(let mayPersist, let unread):
            _ = state.responseBegan(mayPersist: mayPersist, hasUnread: unread)
        case .answered(let unread): return state.responseEnded(hasUnread: unread)
        case .discardingEnded: return state.discardingEnded()
        case .tunnel: state.tunnelBegan()
        case .inputEnded: return state.inputEnded()
        case .inputExhausted: return state.inputExhausted()
        case .drain: return state.drain()
        case .deadline: return state.deadlinePassed()
        }
        return .nothing
    }

    @Test(
        "goes on or ends by what has happened",
        arguments: [
            Case([], .nothing, .head),
            Case([.headBegan], .nothing, .head),
            // One exchange after the other.
            Case([.head()], .nothing, .nothing),
            Case([.head(), .answer(), .answered()], .readHead, .head),
            Case([.head(), .answer(), .answered(unread: true)], .readHead, .head),
            // Content is read while the answer is awaited, and while it is sent.
            Case([.head(content: true)], .nothing, .content),
            Case([.head(content: true), .answer()], .nothing, .content),
            Case([.head(content: true), .contentEnded], .nothing, .nothing),
            Case([.head(content: true), .contentEnded, .answer(), .answered()], .readHead, .head),
            // Nothing is read before the client is known, whatever else happens.
            Case([.head(), .held], .nothing, .nothing),
            Case([.head(content: true), .held], .nothing, .nothing),
            Case([.head(content: true), .held, .contentAbandoned], .nothing, .nothing),
            Case([.head(content: true), .held, .inputEnded], .nothing, .nothing),
            Case([.head(content: true), .held, .drain], .nothing, .nothing),
            Case([.head(content: true), .held, .deadline], .abort, .nothing),
            Case([.head(), .released], .nothing, .nothing),
            Case([.head(), .held, .released], .nothing, .nothing),
            Case([.head(content: true), .held, .released], .nothing, .content),
            Case([.head(content: true), .held, .released, .released], .nothing, .content),
            Case([.head(), .held, .released, .answer(), .answered()], .readHead, .head),
            Case(
                [
                    .head(content: true), .held, .released, .contentAbandoned, .answer(),
                    .answered(),
                ],
                .discardContent, .discarded),
            Case([.head(content: true), .answer(), .held], .nothing, .content),
            // An early answer: the rest is thrown away, or the connection ends.
            Case([.head(content: true), .answer(), .answered()], .discardContent, .discarded),
            Case(
                [.head(content: true), .answer(), .answered(), .contentEnded], .readHead, .head),
            Case(
                [.head(content: true), .answer(), .answered(), .discardingEnded], .linger,
                .discarded),
            Case(
                [.head(content: true), .answer(mayPersist: false), .answered()], .linger, .discarded
            ),
            Case([.head(content: true), .contentAbandoned], .nothing, .discarded),
            // Content that breaks its framing is the connection's last, also behind its answer.
            Case(
                [.head(content: true), .contentBroke, .answer(), .answered()], .linger, .discarded),
            Case([.head(content: true), .contentBroke], .nothing, .discarded),
            Case([.head(content: true), .answer(), .contentBroke], .nothing, .discarded),
            Case(
                [.head(content: true), .answer(), .answered(), .contentBroke], .linger, .discarded),
            Case(
                [
                    .inputEnded, .head(content: true), .answer(unread: true),
                    .answered(unread: true), .contentBroke,
                ], .close, .nothing),
            // A request, or an answer, that is the connection's last.
            Case([.head(persists: false), .answer(), .answered()], .close, .nothing),
            Case(
                [.head(persists: false), .answer(), .answered(unread: true)], .linger, .discarded),
            Case([.head(), .answer(mayPersist: false), .answered()], .close, .nothing),
            // A client that has ended its side still gets its answer, also to requests sent ahead.
            Case([.inputEnded], .readHead, .head),
            Case([.inputEnded, .inputExhausted], .close, .nothing),
            Case([.headBegan, .inputEnded, .inputExhausted], .close, .nothing),
            Case([.head(), .inputEnded], .nothing, .nothing),
            Case([.head(), .inputEnded, .inputExhausted], .nothing, .nothing),
            Case([.head(), .inputEnded, .answer(), .answered()], .close, .nothing),
            Case(
                [.head(), .inputEnded, .answer(unread: true), .answered(unread: true)], .readHead,
                .head),
            // What it sent of its content may lie unread: the driver looks what is missing.
            Case([.head(content: true), .inputEnded], .readHead, .content),
            Case(
                [.head(content: true), .inputEnded, .contentEnded, .answer(), .answered()], .close,
                .nothing),
            // A tunnel that cannot be had: what was and will be sent ahead is nothing to us.
            Case([.head(tunnel: true)], .nothing, .nothing),
            Case([.head(tunnel: true), .answer(), .answered()], .linger, .discarded),
            Case(
                [.head(tunnel: true), .answer(unread: true), .answered(unread: true)], .linger,
                .discarded),
            Case([.head(tunnel: true), .inputEnded, .answer(), .answered()], .close, .nothing),
            Case([.head(tunnel: true), .tunnel], .nothing, .tunnel),
            Case(
                [
                    .inputEnded, .head(content: true), .contentAbandoned, .answer(unread: true),
                    .answered(unread: true),
                ], .discardContent, .discarded),
            Case(
                [
                    .inputEnded, .head(content: true), .contentAbandoned, .answer(unread: true),
                    .answered(unread: true), .discardingEnded,
                ], .close, .nothing),
            Case(
                [.head(content: true), .answer(mayPersist: false), .answered(), .inputEnded],
                .close,
                .nothing),
            Case([.head(content: true), .answer(), .answered(), .inputEnded], .close, .nothing),
            // Shutdown.
            Case([.drain], .close, .nothing),
            Case([.headBegan, .drain], .close, .nothing),
            Case([.head(), .drain], .nothing, .nothing),
            Case([.head(), .drain, .answer(), .answered()], .close, .nothing),
            Case([.head(), .answer(), .drain, .answered()], .close, .nothing),
            Case([.head(content: true), .answer(), .answered(), .drain], .linger, .discarded),
            Case([.head(), .tunnel, .drain], .nothing, .tunnel),
            // Time.
            Case([.deadline], .close, .nothing),
            Case([.headBegan, .deadline], .answerTimeout, .head),
            Case([.head(content: true), .deadline], .answerTimeout, .content),
            Case([.head(content: true), .answer(), .deadline], .abort, .nothing),
            Case([.head(content: true), .answer(), .answered(), .deadline], .abort, .nothing),
            Case(
                [.head(persists: false), .answer(), .answered(unread: true), .deadline], .close,
                .nothing),
        ])
    func path(_ c: Case) {
        var state = ClientConnectionState()
        var action = ClientConnectionState.Action.nothing
        for step in c.steps { action = Self.take(step, &state) }
        #expect(action == c.action)
        #expect(state.reading == c.reading)
    }

    @Test("says in an answer's head whether it goes on")
    func persistence() {
        var state = ClientConnectionState()
        _ = state.headEnded(hasContent: false, persists: true)
        let first = state.responseBegan(mayPersist: true, hasUnread: false)
        _ = state.responseEnded(hasUnread: false)
        _ = state.headEnded(hasContent: false, persists: true)
        _ = state.drain()
        let second = state.responseBegan(mayPersist: true, hasUnread: false)
        #expect([first, second] == [true, false])
    }

    @Test("cancels an exchange that its client leaves, once")
    func vanishing() {
        var idle = ClientConnectionState()
        let whileIdle = idle.connectionEnded()
        var asking = ClientConnectionState()
        _ = asking.headEnded(hasContent: false, persists: true)
        let whileAsking = asking.connectionEnded()
        let again = asking.connectionEnded()
        var answered = ClientConnectionState()
        _ = answered.headEnded(hasContent: true, persists: true)
        _ = answered.responseBegan(mayPersist: true, hasUnread: false)
        _ = answered.responseEnded(hasUnread: false)
        let afterAnswer = answered.connectionEnded()
        #expect([whileIdle, whileAsking, again, afterAnswer] == [false, true, false, false])
    }
}

@Suite("The two directions of a tunnel (RFC 9110 §9.3.6)")
struct TunnelStateTests {
    @Test("end one by one", arguments: TunnelState.Side.allCases)
    func halfClose(_ side: TunnelState.Side) {
        var state = TunnelState()
        let first = state.inputEnded(from: side)
        let takes = [state.takesInput(from: side), state.takesInput(from: side.other)]
        let actions = [
            first, state.inputEnded(from: side), state.inputEnded(from: side.other),
            state.closed(side),
        ]
        #expect(actions == [.closeOutput(of: side.other), .nothing, .closeBoth, .nothing])
        #expect(takes == [false, true])
    }

    @Test("end together when one connection is lost", arguments: TunnelState.Side.allCases)
    func loss(_ side: TunnelState.Side) {
        var state = TunnelState()
        let actions = [state.closed(side), state.closed(side.other)]
        let takes = state.takesInput(from: side.other)
        #expect(actions == [.close(side.other), .nothing])
        #expect(!takes)
    }
}
