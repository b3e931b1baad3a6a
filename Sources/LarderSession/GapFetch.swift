import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// Fetches a gap of an answer whose head has gone to the client already.
///
/// Whatever does not bring bytes of the same representation is a failure: the answer is cut off
/// rather than mixed.
final class GapFetch: GapOpening, FillingWaiter {
    private struct State {
        var filling: Filling?
        var completion: (@Sendable (Result<[SplicedBody.Part], BodyFailure>) -> Void)?
        var isCancelled = false
    }

    private let state: Mutex<State>

    private init(
        _ completion: @escaping @Sendable (Result<[SplicedBody.Part], BodyFailure>) -> Void
    ) {
        self.state = Mutex(State(completion: completion))
    }

    /// The opener of gaps in answers to a request from a stored object.
    static func opener(
        _ session: Session, _ request: Request, _ object: StoredObject
    ) -> SplicedBody.Opener {
        { range, completion in
            let gap = GapFetch(completion)
            gap.start(session, request, object, range)
            return gap
        }
    }

    private func start(
        _ session: Session, _ request: Request, _ object: StoredObject, _ range: Range<UInt64>
    ) {
        guard let extent = object.head.extent,
            let validator = StrongValidator(of: object.head.fields),
            let splice = Splice(range, isWhole: false, extent: extent, validator: validator)
        else { return self.settle(.failure(.store("nothing is missing there"))) }
        let filling = Filling(key: object.key, window: session.configuration.window)
        self.state.withLock { $0.filling = filling }
        _ = filling.join(self, leads: true)
        Fetch(
            session: session,
            order: Fetch.Order(
                // The client's conditions were judged when the answer began.
                request: Validation.unconditional(request), body: nil, key: object.key,
                stored: [object], validating: nil, client: nil, isEntered: false,
                splicing: Fetch.Splicing(splice: splice, object: object, hasBegun: true)),
            filling: filling
        ).start()
    }

    func cancel() {
        let filling = self.state.withLock { state in
            state.isCancelled = true
            state.completion = nil
            return state.filling.take()
        }
        filling?.leave(self)
    }

    private func settle(_ result: Result<[SplicedBody.Part], BodyFailure>) {
        let completion = self.state.withLock { state in
            state.filling = nil
            return state.completion.take()
        }
        if let completion { return completion(result) }
        guard case .success(let parts) = result else { return }
        for case .source(let source, _) in parts { source.cancel() }
    }

    func filling(settled outcome: Filling.Outcome, reader: FillingReader?, leads: Bool) {
        switch outcome {
        case .spliced(let spliced):
            guard let reader else { return self.settle(.failure(.cancelled)) }
            self.settle(.success(SplicedBody.parts(spliced.answer.segments, arriving: reader)))
        case .failed(let failure):
            self.settle(
                .failure(
                    .upstream(
                        UpstreamFailure(.httpResponseIncomplete, detail: failure.detail))))
        case .response, .stored:
            reader?.cancel()
            self.settle(
                .failure(
                    .upstream(
                        UpstreamFailure(
                            .httpResponseIncomplete, detail: "the representation has changed"))))
        }
    }
}

extension SplicedBody {
    /// The parts that segments of an answer are.
    ///
    /// - Parameter arriving: gives the bytes of the one segment that arrives.
    static func parts(
        _ segments: [Splice.Segment], arriving: any BodySource
    ) -> [Part] {
        segments.map { segment in
            switch segment {
            case .stored(let range): .stored(range)
            case .arriving(let range): .source(arriving, length: range.length)
            case .missing(let range): .missing(range)
            }
        }
    }
}
