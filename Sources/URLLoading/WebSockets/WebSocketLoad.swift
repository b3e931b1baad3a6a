import Dispatch
import Foundation
import LarderHTTP
import LarderSession

/// One attempt at a WebSocket, and the connection that it becomes.
///
/// ```
/// connect ─▶ (TLS) ─▶ request ─▶ head ─▶ answered: redirected, refused, or open ─▶ messages ─▶ end
/// ```
///
/// Everything that changes is confined to the connection's queue; unchecked for that reason.
final class WebSocketLoad: Load, StreamOwner, @unchecked Sendable {
    /// How long the peer has to answer a close (RFC 6455 §7.1.1), in seconds.
    static let patience = 5.0
    private static let headLimit = 65_536
    /// Operations of the connection that nobody waits for have this number.
    private static let unnumbered = 0
    /// Reads have this one; messages and other frames later ones, each its own.
    private static let readNumber = 1

    private let order: LoadOrder
    private let observer: any LoadObserver
    private let measurement: MeasuredOnce
    private var connection: StreamConnection?
    private var handshake: WebSocketHandshake?
    private var settings: URLSessionConfiguration?
    private var cookies: (any HopCookies)?
    private var head = Data()
    private var reader = WebSocketReader()
    private weak var purpose: WebSocketPurpose?
    /// The head of the final response is there.
    private var isAnswered = false
    /// That was a yes.
    private var isOpen = false
    private var isHeld = false
    /// What the connection broke with between the handshake and `open`.
    private var broken: URLError?
    private var isOver = false
    /// What the program closes with; the peer's answer is waited for.
    private var closing: (code: URLSessionWebSocketTask.CloseCode, reason: Data?)?
    private var lastNumber = WebSocketLoad.readNumber
    private var writes: [Int: WebSocketPurpose.Waiter] = [:]
    /// A pong is being sent.
    private var isAnswering = false
    /// The payload of the last ping that has come since.
    private var unanswered: Data?
    private var timer: (any DispatchSourceTimer)?
    private let queue: DispatchQueue
    private let patience: Double

    /// - Parameter patience: how long the peer has to answer a close.
    init(
        _ order: LoadOrder, _ observer: any LoadObserver,
        queue: DispatchQueue = DispatchQueue(label: "urlloading.websocket"),
        patience: Double = WebSocketLoad.patience
    ) {
        self.order = order
        self.observer = observer
        self.measurement = MeasuredOnce(order.request, observer)
        self.queue = queue
        self.patience = patience
    }

    /// Begins on its own queue: a program's own storage of cookies may keep whoever asks it waiting.
    func begin(of session: URLSession) {
        self.queue.async { self.start(session) }
    }

    private func start(_ session: URLSession) {
        guard !self.isOver else { return }
        let settings = session.settings
        var random = SystemRandomNumberGenerator()
        let nonce = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let cookies = settings.httpCookieStorage?.hopCookies(
            accept: settings.httpCookieAcceptPolicy, sets: settings.httpShouldSetCookies)
        do throws(URLError) {
            let handshake = try WebSocketHandshake(
                self.order, settings, cookies: cookies, nonce: nonce)
            let connection = StreamConnection(
                StreamPlace(
                    host: handshake.uri.host, port: Int(handshake.uri.port),
                    for: handshake.uri.scheme),
                queue: self.queue)
            self.handshake = handshake
            self.settings = settings
            self.cookies = cookies
            self.connection = connection
            connection.begin(of: session, self)
            if handshake.uri.scheme == .https {
                connection.enqueue(.secure, number: Self.unnumbered, timeout: nil)
            }
            connection.enqueue(
                .write(handshake.request), number: Self.unnumbered, timeout: nil)
            self.read()
        } catch {
            self.refuse(error)
        }
    }

    /// Ends it at once, and waits for nothing.
    ///
    /// A peer that was not told yet is told that it ends (RFC 6455 §7.1.1), where the kernel takes that
    /// and it would not stand in the midst of another frame.
    func cancel() {
        self.queue.async {
            let isTold = !self.isOpen || self.closing != nil
            self.end(saying: isTold ? Data() : WebSocketFrame(opcode: .close).masked())
        }
    }

    /// - Parameter last: the last that the peer hears.
    private func end(saying last: Data = Data()) {
        guard !self.isOver else { return }
        self.isOver = true
        self.timer?.cancel()
        self.timer = nil
        self.writes = [:]
        self.connection?.end(saying: last)
        self.measurement.tell()
    }

    // MARK: What the connection says

    func failed(_ error: URLError) {
        guard !self.isOver else { return }
        if let closing = self.closing { return self.closed(closing.code, closing.reason) }
        let purpose = self.purpose
        if !self.isAnswered {
            self.observer.load(failed: error)
        } else if purpose == nil {
            // A suspended task has not heard of the answer yet: it is told when it opens this.
            self.broken = self.broken ?? error
            self.connection?.end()
            return
        }
        self.end()
        purpose?.failed(error)
    }

    func finished() {
        self.failed(URLError(.networkConnectionLost).completed(for: self.order.request.url))
    }

    func readClosed() {}
    func writeClosed() {}
    func counted(received: Int, sent: Int) {}
    func captured(_ connection: CapturedConnection) {}
    func patience(beyond limit: Duration) -> Duration? { self.order.task.patience(beyond: limit) }

    func asks(
        _ challenge: URLAuthenticationChallenge,
        answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard self.observer.answersChallenges else { return answer(.performDefaultHandling, nil) }
        self.observer.load(challenged: challenge, answer: answer)
    }

    func completed(_ number: Int, _ data: Data?, atEnd: Bool, _ error: URLError?) {
        guard !self.isOver else { return }
        if let error {
            self.writes.removeValue(forKey: number)?(error)
            return self.failed(error)
        }
        guard number == Self.readNumber else {
            self.writes.removeValue(forKey: number)?(nil)
            return
        }
        if let data, !data.isEmpty {
            if self.purpose == nil { self.receiveHead(data) } else { self.receive(data) }
        }
        guard !self.isOver else { return }
        if atEnd {
            return self.failed(
                URLError(self.isAnswered ? .networkConnectionLost : .badServerResponse))
        }
        if self.purpose != nil { self.readOn() } else if !self.isAnswered { self.read() }
    }

    /// An open connection may be silent as long as it likes.
    private func read() {
        let request = self.order.request
        let patience =
            request.isTimeoutSet
            ? request.timeoutInterval : self.settings?.timeoutIntervalForRequest ?? 0
        self.connection?.enqueue(
            .read(minimum: 1, maximum: StreamConnection.pieceSize), number: Self.readNumber,
            timeout: self.isAnswered ? nil : Duration(interval: patience))
    }

    // MARK: The handshake

    private func receiveHead(_ data: Data) {
        self.head.append(data)
        while !self.isOver, !self.isAnswered,
            let end = self.head.firstRange(of: Data("\r\n\r\n".utf8))
        {
            let block = Array(self.head[..<end.upperBound])
            self.head = Data(self.head[end.upperBound...])
            do throws(HeadError) {
                self.answered(try ResponseHeadParser.parse(block: block.span))
            } catch {
                return self.failed(URLError(.badServerResponse))
            }
        }
        if !self.isAnswered, self.head.count > Self.headLimit {
            self.failed(URLError(.badServerResponse))
        }
    }

    private func answered(_ head: ResponseHead) {
        guard let handshake = self.handshake, let url = self.order.request.url else { return }
        // What is only preliminary is not told (RFC 9110 §15.2).
        if head.status.rawValue < 200, head.status.rawValue != 101 { return }
        self.isAnswered = true
        let response = HTTPURLResponse(url: url, head: head, bodyLength: .none)
        let waits = handshake.takeCookies(of: head, into: self.cookies) { [self] in
            self.queue.async { self.judge(head, response, handshake) }
        }
        if !waits { self.judge(head, response, handshake) }
    }

    private func judge(
        _ head: ResponseHead, _ response: HTTPURLResponse, _ handshake: WebSocketHandshake
    ) {
        guard !self.isOver else { return }
        do throws(URLError) {
            let opens = try handshake.opens(head)
            self.measurement.note(response, from: .network)
            self.isOpen = opens
            guard opens else { return self.refused(head, response, handshake) }
            let body = WebSocketBody(self, chosen: handshake.chosenProtocol(head))
            self.observer.load(answered: LoadAnswer(response: response, head: head, body: body))
        } catch {
            self.refuse(error)
        }
    }

    /// It never opens.
    private func refuse(_ error: URLError) {
        self.observer.load(failed: error)
        self.end()
    }

    /// A challenge, a redirection, or a no: its content is of no interest.
    private func refused(
        _ head: ResponseHead, _ response: HTTPURLResponse, _ handshake: WebSocketHandshake
    ) {
        if let next = handshake.redirection(head, of: self.order.request) {
            self.observer.load(redirectedTo: next, by: response)
        } else {
            self.observer.load(
                answered: LoadAnswer(response: response, head: head, body: EmptyBody()))
        }
        self.end()
    }

    // MARK: Messages

    /// Whoever speaks from here on; what came with the head is his.
    func open(for purpose: WebSocketPurpose) {
        self.queue.async {
            guard !self.isOver else { return }
            self.purpose = purpose
            let rest = self.head
            self.head = Data()
            if !rest.isEmpty { self.receive(rest) }
            if let error = self.broken { self.failed(error) }
            if !self.isOver { self.readOn() }
        }
    }

    /// Stands still, or goes on; one that is being closed does not stand still.
    ///
    /// - Parameter isSuspended: asked when it takes effect, as by `StreamChannel.pause(if:)`.
    func pause(if isSuspended: @escaping @Sendable () -> Bool) {
        self.queue.async {
            guard !self.isOver, self.closing == nil else { return }
            self.connection?.pauseNow(isSuspended())
        }
    }

    /// There is room for messages again.
    func goOn() {
        self.queue.async {
            guard !self.isOver, self.isHeld else { return }
            self.isHeld = false
            self.readOn()
        }
    }

    private func readOn() {
        // The answer to a close may be behind what nobody takes any more.
        guard self.closing != nil || self.purpose?.hasRoom == true else {
            self.isHeld = true
            return
        }
        self.read()
    }

    private func receive(_ data: Data) {
        guard let purpose = self.purpose else { return }
        self.reader.append(data)
        do throws(WebSocketFault) {
            while !self.isOver, let event = try self.reader.next(limit: purpose.maximumLength) {
                switch event {
                case .message(let message):
                    // What finds no room behind a close is left.
                    if self.closing == nil || purpose.hasRoom { purpose.received(message) }
                case .ping(let payload): self.pong(payload)
                case .pong(let payload): purpose.ponged(payload)
                case .closed(let code, let reason): self.peerClosed(code, reason)
                }
            }
        } catch {
            self.write(.close, WebSocketFrame.closePayload(error.closeCode.rawValue, nil))
            self.failed(error.error)
        }
    }

    /// Answers a ping; where the answer to another is still to be sent, the most recent one only
    /// (RFC 6455 §5.5.3), so that a server that reads nothing fills nothing.
    private func pong(_ payload: Data) {
        guard !self.isAnswering else {
            self.unanswered = payload
            return
        }
        self.isAnswering = true
        self.write(.pong, payload) { [weak self] _ in
            guard let self else { return }
            self.isAnswering = false
            if !self.isOver, let next = self.unanswered.take() { self.pong(next) }
        }
    }

    /// Sends a frame; what is sent after a close nobody reads.
    func send(
        _ opcode: WebSocketFrame.Opcode, _ payload: Data,
        done: @escaping WebSocketPurpose.Waiter
    ) {
        self.queue.async {
            guard !self.isOver, self.closing == nil else {
                return done(
                    URLError(.networkConnectionLost).completed(for: self.order.request.url))
            }
            self.write(opcode, payload, done)
        }
    }

    private func write(
        _ opcode: WebSocketFrame.Opcode, _ payload: Data, _ done: WebSocketPurpose.Waiter? = nil
    ) {
        self.lastNumber += 1
        self.writes[self.lastNumber] = done
        self.connection?.enqueue(
            .write(WebSocketFrame(opcode: opcode, payload: payload).masked()),
            number: self.lastNumber, timeout: nil)
    }

    // MARK: The end

    /// Says that nothing more will be sent, and waits for the peer's answer.
    func close(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
        self.queue.async {
            guard !self.isOver, self.closing == nil else { return }
            self.closing = (code, reason)
            self.write(.close, WebSocketFrame.closePayload(code.rawValue, reason))
            let timer = DispatchSource.makeTimerSource(queue: self.queue)
            timer.schedule(deadline: .now() + self.patience)
            timer.setEventHandler { [weak self] in self?.closed(code, reason) }
            timer.activate()
            self.timer = timer
            // The answer is behind what has come and was not taken.
            if self.isHeld {
                self.isHeld = false
                self.readOn()
            }
            // It may end here.
            self.connection?.pauseNow(false)
        }
    }

    private func peerClosed(_ code: Int?, _ reason: Data?) {
        if let closing = self.closing { return self.closed(closing.code, closing.reason) }
        self.write(.close, WebSocketFrame.closePayload(code, reason))
        self.closed(
            code.flatMap { URLSessionWebSocketTask.CloseCode(rawValue: $0) } ?? .noStatusReceived,
            reason)
    }

    private func closed(_ code: URLSessionWebSocketTask.CloseCode, _ reason: Data?) {
        guard !self.isOver else { return }
        let purpose = self.purpose
        self.end()
        purpose?.closed(code, reason)
    }
}
