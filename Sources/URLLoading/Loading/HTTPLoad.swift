import Foundation
import LarderHTTP
import LarderSession
import NIOCore
import Synchronization

/// One request of a task over HTTP or FTP: the driver of `HTTPLoadMachine`.
///
/// It is all that the engine meets of a task: the client of its exchange, the observer of its transfer
/// and the body of its answer, as one object, since small requests cost little but objects. Held by its
/// task, and by the engine as long as that is at work for it.
final class HTTPLoad: Load {
    struct State: ~Copyable {
        var machine = HTTPLoadMachine()
        var exchange: (any Exchange)?
        /// The way out of waiting for a route.
        var watch: (any ConnectivityWatch)?
        var waits = 0
        /// Whom to tell that the task stands still, or goes on.
        var suspensionChanged: (@Sendable () -> Void)?
        var trust = LoadTrust()
        /// What the cache is about to store.
        var offer: StoringOffer?
        var body = Body.none
        /// nil: nobody looks at what it takes.
        var measurement: TransactionMeasurement?
        var bodyBytes: Int64 = 0
    }

    enum Body {
        case none
        case resident(ByteBuffer)
        case source(any BodySource)
        /// Let go of before its end: what was read of it is not the whole.
        case cancelled

        /// All there is of it is at hand.
        var isWhole: Bool {
            switch self {
            case .none, .resident: true
            case .source, .cancelled: false
            }
        }
    }

    let engine: LoadingEngine
    let order: LoadOrder
    let observer: any LoadObserver
    /// Asks the observer about servers.
    let asks: Bool
    /// Is measured.
    let readsMeasurement: Bool
    /// May be answered before it has begun.
    let mayBeAnsweredAtOnce: Bool
    private let decidesAboutStoring: Bool
    private let isFTP: Bool
    private let content: HeldContent?
    let state: Mutex<State>

    init(_ engine: LoadingEngine, _ order: LoadOrder, _ observer: any LoadObserver) {
        self.engine = engine
        self.order = order
        self.observer = observer
        self.asks = observer.answersChallenges
        self.readsMeasurement = observer.readsMeasurement
        self.mayBeAnsweredAtOnce = observer.mayBeAnsweredAtOnce
        self.decidesAboutStoring = observer.decidesAboutStoring
        self.isFTP = order.request.url.map(Self.isFTP) ?? false
        self.content = order.body.map { HeldContent($0.source) }
        var state = State()
        if self.readsMeasurement { state.measurement = TransactionMeasurement() }
        self.state = Mutex(state)
    }

    private static func isFTP(_ url: URL) -> Bool {
        !url.isPlainlyWeb && url.scheme.map { RequestFields.isSame($0, "ftp") } ?? false
    }

    func begin() { self.attempt() }

    // MARK: Attempts

    /// Asks the engine, for the first time or once more.
    ///
    /// - Parameter isKnown: the same request came before, so that its answer may be worth keeping.
    func attempt(_ given: consuming Request, isKnown: Bool = false) {
        // Moved, so that it is changed where it lies.
        var request = given
        let uri = request.uri
        let identity = self.engine.remember { $0.identity(for: uri.host, uri.port) }
        let (begun, shown) = self.state.withLock { state in
            (state.machine.begins(), state.trust.shows(known: identity))
        }
        guard let number = begun else { return }
        if let shown { request.transfer.identity = shown }
        if let login = self.proxyLogin {
            request.transfer.proxyAuthorization = ProxyAuthorization(login)
        }
        // What is not safe makes the cache forget (RFC 9111 §4.4), whoever asks for it.
        let concernsCache = self.order.usesCache || !request.method.isSafe
        let session =
            concernsCache && uri.scheme != .ftp ? self.engine.caching : self.engine.direct
        let policy = self.engine.rules.cachePolicy(for: self.order.request)
        var options = ExchangeOptions(cachePolicy: policy)
        options.collapses = false
        options.mayBeAnsweredAtOnce = self.mayBeAnsweredAtOnce
        let exchange: any Exchange
        if session === self.engine.caching, let cache = self.engine.cache {
            let offer = cache.storingOffer(
                for: self.order.task, self.order.request, asks: self.decidesAboutStoring)
            self.state.withLock { $0.offer = offer }
            options.storing = offer
            options.keepsStanding = isKnown
            // Its methods, which would be in the midst of a look-up, may hold locks of the program's.
            if cache.isOverridden { options.mayBeAnsweredAtOnce = false }
            exchange = cache.lending(to: self.order.task, request) {
                session.perform(
                    request, body: self.content?.reader(), options: options, client: self)
            }
        } else if session === self.engine.direct,
            let passed = self.engine.pass(request, under: policy, for: self)
        {
            exchange = passed
        } else {
            exchange = session.perform(
                request, body: self.content?.reader(), options: options, client: self)
        }
        let isUnwanted = self.state.withLock { state in
            // It may have been answered, or have failed and been followed by another one, meanwhile.
            guard state.machine.isAsking(attempt: number) else { return state.machine.isOver }
            state.exchange = exchange
            return false
        }
        if isUnwanted { exchange.cancel() }
    }

    /// Begins an attempt, the first one or one more.
    func attempt() {
        var isKnown = false
        if let question = self.question {
            switch self.engine.standing.find(question) {
            case .known(let entry):
                if self.isAnswered(by: entry) { return }
                isKnown = true
            case .seen: isKnown = true
            case .new: break
            }
        }
        do throws(URLError) {
            guard let url = self.order.request.url else { throw URLError(.badURL) }
            let uri = try self.engine.target(of: url)
            self.attempt(
                try self.order.engineRequest(self.engine.rules, uri: uri, observer: self),
                isKnown: isKnown)
        } catch {
            self.refuse(error)
        }
    }

    /// Ends a load for which nothing is under way.
    func refuse(_ error: URLError) {
        guard self.state.withLock({ $0.machine.refused() }) else { return }
        self.tell(failed: error)
    }

    func tell(failed error: URLError) {
        self.content?.cancel()
        self.observer.load(failed: error.completed(for: self.order.request.url))
        self.state.withLock { $0.machine.told() }
        self.measureIfDue()
    }

    // MARK: The end

    /// Ends the load and whatever is under way for it.
    func cancel() {
        let (wasUnderWay, exchange, body, watch, changed) = self.state.withLock { state in
            let wasUnderWay = state.machine.ends()
            let body = state.body
            if wasUnderWay { state.body = .cancelled }
            return (
                wasUnderWay, state.exchange.take(), body, state.watch.take(),
                state.suspensionChanged.take()
            )
        }
        watch?.cancel()
        // What goes on without it, into the cache, does not stand still with it.
        defer { changed?() }
        guard wasUnderWay else { return }
        exchange?.cancel()
        if case .source(let source) = body { source.cancel() }
        self.content?.cancel()
        self.measureIfDue()
    }

    var contentIsWhole: Bool { self.content?.isWhole ?? true }
}

// MARK: - What the engine says

extension HTTPLoad: ExchangeClient {
    func exchange(informational head: ResponseHead) {
        guard self.state.withLock({ $0.machine.isAsking }), let url = self.order.request.url
        else { return }
        self.observer.load(
            informational: HTTPURLResponse(url: url, head: head, bodyLength: .none))
    }

    func exchange(answered answer: Answer) {
        guard let url = self.order.request.url else { return }
        if let refusal = self.ftpRefusal(answer) { return self.failed(refusal, answer) }
        let response = self.response(answer, url)
        let isFromCache = answer.cacheStatus.hit
        let (isWanted, offer) = self.state.withLock { state -> (Bool, StoringOffer?) in
            guard state.machine.answered() else { return (false, nil) }
            state.exchange = nil
            state.body =
                switch answer.body {
                case .none: .none
                case .resident(let bytes): .resident(bytes)
                case .source(let source): .source(source)
                }
            state.measurement?.source = isFromCache ? .cache : .network
            state.measurement?.response = response
            return (true, state.offer.take())
        }
        guard isWanted else {
            if case .source(let source) = answer.body { source.cancel() }
            return
        }
        if answer.standing != nil, let question = self.question {
            self.engine.standing.keep(answer, to: question)
        }
        self.identityIsAccepted()
        let told = LoadAnswer(
            response: response, head: self.isFTP ? nil : answer.head, body: self,
            isFromCache: isFromCache, storing: offer?.pending,
            proxy: answer.head.status.rawValue == 407 ? self.proxy : nil)
        self.observer.load(answered: told)
        self.state.withLock { $0.machine.told() }
        self.measureIfDue()
    }

    func exchange(failed failure: ExchangeFailure) {
        if let refusal = self.tunnelRefusal(failure) {
            return self.exchange(answered: refusal)
        }
        let lacksRoute = self.lacksRoute(failure)
        let mayRepeat = self.contentIsWhole
        let (action, trust) = self.state.withLock { state in
            state.exchange = nil
            let action = state.machine.failed(
                asks: state.trust.question != nil,
                waits: lacksRoute && self.engine.rules.waitsForConnectivity, mayRepeat: mayRepeat)
            return (action, state.trust)
        }
        switch action {
        case .tell:
            let error = URLError(failure, shown: trust, lacksRoute: lacksRoute)
            if error.isAboutHandshake { self.identityIsRefused(trust) }
            self.tell(failed: error)
        case .ask: self.ask(trust)
        case .wait:
            self.awaitRoute(or: URLError(failure, shown: trust, lacksRoute: lacksRoute))
        case .nothing: break
        }
    }

    private func response(_ answer: Answer, _ url: URL) -> URLResponse {
        guard self.isFTP else {
            // Of what was decoded nobody knows the length beforehand.
            let head = answer.head
            let isDecoded = head.fields.nameUndoneCodings && !self.asksForRange
            return HTTPURLResponse(
                url: url, head: head, bodyLength: isDecoded ? .unknown : answer.bodyLength)
        }
        let length: Int =
            if case .known(let bytes) = answer.bodyLength { Int(clamping: bytes) } else { -1 }
        return URLResponse(
            url: url, mimeType: answer.head.fields.string(FieldName(.contentType)),
            expectedContentLength: length, textEncodingName: nil)
    }

    private var asksForRange: Bool {
        self.order.request.value(forHTTPHeaderField: "Range") != nil
            || self.engine.rules.fields.whole.contains(FieldName(.range))
    }

    /// What an FTP server's refusal is, which the engine tells as HTTP would.
    private func ftpRefusal(_ answer: Answer) -> URLError? {
        guard self.isFTP, !answer.head.status.isSuccessful else { return nil }
        return URLError(
            answer.head.status.rawValue == 403 ? .userAuthenticationRequired : .fileDoesNotExist)
    }

    private func failed(_ error: URLError, _ answer: Answer) {
        if case .source(let source) = answer.body { source.cancel() }
        let isTold = self.state.withLock { state in
            state.exchange = nil
            return state.machine.failed(asks: false, waits: false, mayRepeat: false) == .tell
        }
        if isTold { self.tell(failed: error) }
    }
}

// MARK: - The body of the answer

extension HTTPLoad: BodySource {
    func attach(wake: @escaping @Sendable () -> Void) {
        let body = self.state.withLock { $0.body }
        if case .source(let source) = body { source.attach(wake: wake) }
    }

    func next() -> BodyStep {
        let body = self.state.withLock { state -> Body in
            let body = state.body
            if case .resident(let bytes) = body {
                state.body = .none
                state.bodyBytes += Int64(bytes.readableBytes)
            }
            return body
        }
        switch body {
        case .resident(let bytes) where bytes.readableBytes > 0: return .piece(bytes)
        case .resident, .none:
            self.bodyEnded()
            return .end(trailers: Fields())
        case .cancelled: return .failed(.cancelled)
        case .source(let source):
            let step = source.next()
            switch step {
            case .piece(let piece):
                self.state.withLock { $0.bodyBytes += Int64(piece.readableBytes) }
            case .pending: break
            case .end, .failed: self.bodyEnded()
            }
            return step
        }
    }

    /// The body of the answer is in memory, or there is none.
    var isWhole: Bool {
        self.state.withLock { $0.body.isWhole }
    }

    /// Takes the whole body at once, in the place of `attach` and `next`.
    ///
    /// - Returns: nil where it is not in memory; empty where there is none.
    func takeWhole() -> ByteBuffer? {
        let bytes = self.state.withLock { state -> ByteBuffer? in
            switch state.body {
            case .source, .cancelled: return nil
            case .none: return ByteBuffer()
            case .resident(let bytes):
                state.bodyBytes += Int64(bytes.readableBytes)
                return bytes
            }
        }
        if bytes != nil { self.bodyEnded() }
        return bytes
    }

    private func bodyEnded() {
        _ = self.state.withLock { state in
            if case .cancelled = state.body { return false }
            state.body = .none
            return state.machine.ends()
        }
        self.measureIfDue()
    }
}
