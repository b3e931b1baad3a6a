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
        var order: Fetch.Order?
        var completion: (@Sendable (Result<[SplicedBody.Part], BodyFailure>) -> Void)?
        var isCancelled = false
    }

    private let session: Session
    private let state: Mutex<State>

    private init(
        _ session: Session,
        _ completion: @escaping @Sendable (Result<[SplicedBody.Part], BodyFailure>) -> Void
    ) {
        self.session = session
        self.state = Mutex(State(completion: completion))
    }

    /// The opener of gaps in answers to a request from a stored object.
    static func opener(
        _ session: Session, _ request: Request, _ snapshot: ConfigurationSnapshot,
        _ object: StoredObject
    ) -> SplicedBody.Opener {
        { range, completion in
            let gap = GapFetch(session, completion)
            gap.start(request, snapshot, object, range)
            return gap
        }
    }

    private func start(
        _ request: Request, _ snapshot: ConfigurationSnapshot, _ object: StoredObject,
        _ range: Range<UInt64>
    ) {
        guard let extent = object.head.extent,
            let validator = StrongValidator(of: object.head.fields),
            let splice = Splice(range, isWhole: false, extent: extent, validator: validator)
        else { return self.settle(.failure(.store("nothing is missing there"))) }
        let splicing = Fetch.Splicing(splice: splice, object: object, hasBegun: true)
        let order = Fetch.Order(
            // The client's conditions were judged when the answer began.
            request: Validation.unconditional(request), snapshot: snapshot, body: nil,
            key: object.key, stored: [object], validating: nil, client: nil, isEntered: false,
            splicing: splicing)
        self.state.withLock { $0.order = order }
        let mine = Filling(
            key: object.key, window: self.session.configuration.window,
            part: .gap(Filling.Gap(splicing)))
        // The bytes go between others of the same validator: when those were found does not matter.
        switch self.session.fillings.find(
            part: mine, at: self.session.clock.now(), era: nil)
        {
        case .entered: self.lead(order, mine, isEntered: true)
        case .notWorthWhile, .removedMeanwhile, .storedMeanwhile: self.lead(order)
        case .existing(let filling): self.join(order, filling)
        }
    }

    private func lead(
        _ order: Fetch.Order, _ filling: Filling? = nil,
        isEntered: Bool = false
    ) {
        var order = order
        order.isEntered = isEntered
        let filling = filling ?? Filling(key: order.key, window: self.session.configuration.window)
        // A filling that others may have joined is fetched for, whoever has left.
        guard self.waits(for: filling) || isEntered else { return }
        _ = filling.join(self, leads: true)
        Fetch(session: self.session, order: order, filling: filling).start()
        if self.state.withLock({ $0.isCancelled }) { filling.leave(self) }
    }

    private func join(_ order: Fetch.Order, _ filling: Filling) {
        guard self.waits(for: filling) else { return }
        switch filling.join(self) {
        case .waiting: if self.state.withLock({ $0.isCancelled }) { filling.leave(self) }
        case .known(let outcome, let reader):
            self.filling(settled: outcome, reader: reader, leads: false)
        case .tooLate: self.lead(order)
        }
    }

    private func waits(for filling: Filling) -> Bool {
        self.state.withLock { state in
            if !state.isCancelled { state.filling = filling }
            return !state.isCancelled
        }
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
        for part in parts { part.source?.cancel() }
    }

    /// Makes use of what another client's fetch brings, or fetches alone.
    private func filling(_ outcome: Filling.Outcome, _ reader: FillingReader?) {
        guard let order = self.state.withLock({ $0.order }), let splicing = order.splicing else {
            reader?.cancel()
            return self.settle(.failure(.cancelled))
        }
        guard case .spliced(let spliced) = outcome, let reader,
            let answer = splicing.splice.answer(from: spliced.part)
        else {
            reader?.cancel()
            return self.lead(order)
        }
        self.settle(.success(SplicedBody.parts(answer.segments, arriving: reader)))
    }

    func filling(settled outcome: Filling.Outcome, reader: FillingReader?, leads: Bool) {
        guard leads || outcome.isFailureOfAll else { return self.filling(outcome, reader) }
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
        _ segments: [Splice.Segment], arriving: FillingReader
    ) -> [Part] {
        segments.map { segment in
            switch segment {
            case .stored(let range): .stored(range)
            case .arriving(let range): .arriving(arriving, range)
            case .missing(let range): .missing(range)
            }
        }
    }
}
