import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// A body put together from several: texts, stretches of a stored body, one that is arriving, and
/// gaps that are fetched when the reading gets to them.
///
/// Holds no bytes itself; each part is asked for only when the one before it is over.
final class SplicedBody: BodySource {
    enum Part {
        case bytes(ByteBuffer)
        /// A stretch of the stored body.
        case stored(Range<UInt64>)
        /// A source that must give exactly so many bytes.
        case source(any BodySource, length: UInt64)
        /// What arrives of the representation for this client among others, who do not wait for it.
        case arriving(FillingReader, Range<UInt64>)
        /// Bytes of the representation that have to be asked for.
        case missing(Range<UInt64>)

        /// What gives its bytes, where somebody else makes them.
        var source: (any BodySource)? {
            switch self {
            case .source(let source, _): source
            case .arriving(let reader, _): reader
            case .bytes, .stored, .missing: nil
            }
        }
    }

    /// Fetches missing bytes: calls back once, on any thread, with the parts that give them, or with
    /// the reason why nothing does.
    typealias Opener =
        @Sendable (Range<UInt64>, @escaping @Sendable (Result<[Part], BodyFailure>) -> Void) ->
        any GapOpening

    private struct State {
        /// What is still to come, the next one last.
        var parts: [Part]
        var current: (source: any BodySource, remaining: UInt64)?
        var wake: (@Sendable () -> Void)?
        /// A gap has been asked for and not been answered.
        var isOpening = false
        var opening: (any GapOpening)?
        /// The reader waits for the answer.
        var isWaiting = false
        var openings = 0
        /// The last step, from the first time that it was given.
        var last: BodyStep?
    }

    private enum Turn {
        case step(BodyStep)
        case read(any BodySource, remaining: UInt64)
        case arrive(FillingReader, Range<UInt64>)
        case open(Range<UInt64>)
        case fetch(Range<UInt64>)
        case fail(BodyFailure)
    }

    /// An origin that answers each request with a little of what was asked for must not be asked
    /// without end.
    private static let mostOpenings = 32

    private let body: any StoredBody
    private let opener: Opener?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - body: what `.stored` parts are stretches of.
    ///   - opener: for `.missing` parts; a body without such parts needs none.
    init(_ parts: [Part], of body: any StoredBody, opener: Opener? = nil) {
        self.body = body
        self.opener = opener
        self.state = Mutex(State(parts: parts.reversed()))
    }

    deinit {
        self.end(with: .failed(.cancelled))
    }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { $0.wake = wake }
    }

    func next() -> BodyStep {
        while true {
            switch self.state.withLock({ Self.turn(&$0) }) {
            case .step(let step): return step
            case .fail(let failure): return self.end(with: .failed(failure))
            case .open(let range): self.begin(self.body.reader(range: range), range.length)
            case .arrive(let reader, let range): self.arrive(reader, range)
            case .fetch(let range): self.fetch(range)
            case .read(let source, let remaining):
                if let step = self.read(source, remaining) { return step }
            }
        }
    }

    func cancel() {
        self.end(with: .failed(.cancelled))
    }

    // MARK: Inside

    private static func turn(_ state: inout State) -> Turn {
        if let last = state.last { return .step(last) }
        if let current = state.current {
            return .read(current.source, remaining: current.remaining)
        }
        if state.isOpening {
            state.isWaiting = true
            return .step(.pending)
        }
        switch state.parts.popLast() {
        case .bytes(let bytes)?: return .step(.piece(bytes))
        case .stored(let range)?: return .open(range)
        case .source(let source, let length)?:
            if let wake = state.wake { source.attach(wake: wake) }
            state.current = (source, length)
            return .read(source, remaining: length)
        case .arriving(let reader, let range)?: return .arrive(reader, range)
        case .missing(let range)?:
            state.openings += 1
            guard state.openings <= Self.mostOpenings else {
                return .fail(.upstream(Self.failure("the origin gives too little at a time")))
            }
            state.isOpening = true
            return .fetch(range)
        case nil:
            state.last = .end(trailers: Fields())
            return .step(.end(trailers: Fields()))
        }
    }

    private func begin(_ source: any BodySource, _ length: UInt64) {
        let (wake, isOver) = self.state.withLock { state in
            if state.last == nil { state.current = (source, length) }
            return (state.wake, state.last != nil)
        }
        if isOver { return source.cancel() }
        if let wake { source.attach(wake: wake) }
    }

    /// Begins with what arrives; what the others did not wait with is asked for.
    private func arrive(_ reader: FillingReader, _ range: Range<UInt64>) {
        guard reader.begin() else {
            return self.state.withLock { $0.parts.append(.missing(range)) }
        }
        self.begin(reader, range.length)
    }

    /// The next step of the source at hand; nil where that is over.
    private func read(_ source: any BodySource, _ remaining: UInt64) -> BodyStep? {
        switch source.next() {
        case .piece(let piece):
            let count = UInt64(piece.readableBytes)
            guard count <= remaining else {
                return self.end(
                    with: .failed(.upstream(Self.failure("more bytes than were announced"))))
            }
            self.state.withLock { state in
                if state.current != nil { state.current = (source, remaining - count) }
            }
            return .piece(piece)
        case .pending: return .pending
        case .end:
            guard remaining == 0 else {
                return self.end(
                    with: .failed(.upstream(Self.failure("fewer bytes than were announced"))))
            }
            self.state.withLock { $0.current = nil }
            return nil
        case .failed(let failure): return self.end(with: .failed(failure))
        }
    }

    private func fetch(_ range: Range<UInt64>) {
        guard let opener = self.opener else { return self.opened(.failure(.cancelled)) }
        let opening = opener(range) { [weak self] result in
            guard let self else { return Self.drop(result) }
            self.opened(result)
        }
        let isOver = self.state.withLock { state in
            if state.isOpening { state.opening = opening }
            return state.last != nil
        }
        if isOver { opening.cancel() }
    }

    private func opened(_ result: Result<[Part], BodyFailure>) {
        let (wake, isOver) = self.state.withLock { state -> ((@Sendable () -> Void)?, Bool) in
            state.isOpening = false
            state.opening = nil
            guard state.last == nil else { return (nil, true) }
            switch result {
            case .success(let parts): state.parts += parts.reversed()
            case .failure(let failure): state.last = .failed(failure)
            }
            defer { state.isWaiting = false }
            return (state.isWaiting ? state.wake : nil, false)
        }
        if isOver { Self.drop(result) }
        wake?()
    }

    /// Nobody will read these.
    private static func drop(_ result: Result<[Part], BodyFailure>) {
        if case .success(let parts) = result { self.cancel(parts) }
    }

    private static func cancel(_ parts: [Part]) {
        for part in parts { part.source?.cancel() }
    }

    /// Ends with this step, unless it has ended; lets go of all that was to come.
    @discardableResult
    private func end(with last: BodyStep) -> BodyStep {
        let (said, source, opening, parts) = self.state.withLock { state in
            let said = state.last ?? last
            state.last = said
            defer {
                state.current = nil
                state.opening = nil
                state.parts = []
            }
            return (said, state.current?.source, state.opening, state.parts)
        }
        source?.cancel()
        opening?.cancel()
        Self.cancel(parts)
        return said
    }

    private static func failure(_ detail: String) -> UpstreamFailure {
        UpstreamFailure(.httpResponseIncomplete, detail: detail)
    }
}

/// A gap that has been asked for.
protocol GapOpening: AnyObject, Sendable {
    /// Nobody waits for it any more. Harmless at any time.
    func cancel()
}

extension Range<UInt64> {
    /// How many there are.
    var length: UInt64 { self.upperBound - self.lowerBound }
}
