import Dispatch
import Foundation
import Glibc
import LarderHTTP
import LarderTransfer
import Synchronization

/// Whose a connection is, and what he hears of it, on its queue.
protocol StreamOwner: AnyObject, Sendable {
    func completed(_ number: Int, _ data: Data?, atEnd: Bool, _ error: URLError?)
    /// It is of no use any more.
    func failed(_ error: URLError)
    /// Both sides are closed, and all is out.
    func finished()
    func readClosed()
    func writeClosed()
    /// Bytes came, and went.
    func counted(received: Int, sent: Int)
    /// The connection was given away.
    func captured(_ connection: CapturedConnection)
    /// The server, or the want of a certificate, is to be decided about.
    func asks(
        _ challenge: URLAuthenticationChallenge,
        answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void)
    /// How much longer what has taken `limit` may take, as it stood still meanwhile; nil: no longer.
    ///
    /// Nil unless it says otherwise.
    func patience(beyond limit: Duration) -> Duration?
}

extension StreamOwner {
    func patience(beyond limit: Duration) -> Duration? { nil }
}

/// Drives one connection: dials, reads, writes, speaks TLS.
///
/// Everything that changes is confined to `queue`, which costs no thread while nothing happens; the
/// socket never blocks. Unchecked for that reason. It holds its owner from `begin` to `end`.
final class StreamConnection: StreamChannel, @unchecked Sendable {
    /// Bytes read, or enciphered, at a time.
    static let pieceSize = 65_536

    let place: StreamPlace
    let queue: DispatchQueue
    var machine = StreamMachine()
    var owner: (any StreamOwner)?
    var settings: URLSessionConfiguration?
    var socket: StreamSocket?
    var tls: TLSConversation?
    var dial: (any TunnelDial)?
    /// What of a write has not been enciphered, or sent.
    var plain = Data()
    /// What goes out as it stands: a piece of `plain`, or TLS's.
    var outgoing = Data()
    /// A write is under way.
    var isSending = false
    /// To be shut down when all is out.
    var isClosingWrite = false
    var isSecuring = false
    /// The task ends when all is out.
    private var isFinishing = false
    private lazy var timers = OperationTimers(on: self.queue)
    var handshakeTimer: (any DispatchSourceTimer)?
    /// What the server wanted, and was shown.
    var shown = LoadTrust()
    var isOver = false

    init(
        _ place: StreamPlace, queue: DispatchQueue = DispatchQueue(label: "urlloading.stream")
    ) {
        self.place = place
        self.queue = queue
    }

    // MARK: From any thread

    func begin(of session: URLSession, _ owner: any StreamOwner) {
        let (loaders, settings) = (session.loaders, session.settings)
        self.queue.async {
            guard !self.isOver else { return }
            self.owner = owner
            self.settings = settings
            self.timers.begin()
            self.connect(by: loaders)
        }
    }

    func enqueue(_ operation: StreamMachine.Operation, number: Int, timeout: Duration?) {
        self.queue.async {
            guard !self.isOver else { return }
            if let timeout { self.limit(number, to: timeout) }
            self.perform(self.machine.enqueue(operation, number: number))
        }
    }

    func pause(if isSuspended: @escaping @Sendable () -> Bool) {
        self.queue.async { self.pauseNow(isSuspended()) }
    }

    /// On its queue.
    func pauseNow(_ isPaused: Bool) {
        guard !self.isOver else { return }
        if isPaused {
            self.machine.isPaused = true
            self.watch()
        } else {
            self.perform(self.machine.resumed())
            self.pump()
        }
    }

    /// Lets go of everything; nothing is told any more.
    func end() { self.end(saying: Data()) }

    /// Lets go of everything; nothing is told any more.
    ///
    /// - Parameter last: goes out before, where nothing else is on its way and the kernel takes it.
    func end(saying last: Data) {
        self.queue.async {
            if !self.isOver, !last.isEmpty { self.say(last) }
            self.isOver = true
            self.machine.over()
            self.dial?.cancel()
            self.dial = nil
            self.timers.cancelAll()
            self.handshakeTimer?.cancel()
            self.handshakeTimer = nil
            self.socket?.close()
            self.socket = nil
            self.tls = nil
            self.owner = nil
            self.plain = Data()
            self.outgoing = Data()
        }
    }

    // MARK: The connection

    private func connect(by loaders: any SessionLoaders) {
        guard let port = UInt16(exactly: self.place.port), port > 0, !self.place.host.isEmpty else {
            return self.fail(.badURL)
        }
        self.dial = loaders.connect(
            host: self.place.host, port: port, for: self.place.scheme
        ) { result in
            self.queue.async {
                // Otherwise the socket is closed with the last that knows it.
                guard !self.isOver else { return }
                self.connected(result)
            }
        }
    }

    private func connected(_ result: Result<DialledSocket, URLError>) {
        self.dial = nil
        switch result {
        case .failure(let error): self.owner?.failed(error)
        case .success(let dialled):
            guard let descriptor = dialled.take() else { return self.fail(.cannotConnectToHost) }
            self.socket = StreamSocket(
                descriptor, queue: self.queue,
                readable: { [weak self] in self?.readable() },
                writable: { [weak self] in self?.pump() })
            self.perform(self.machine.opened())
        }
    }

    func fail(_ code: URLError.Code) {
        self.owner?.failed(URLError(code))
    }

    /// Speaking TLS failed, be it for who the two are.
    func fail(_ failure: UpstreamFailure) {
        self.owner?.failed(URLError(failure, shown: self.shown))
    }

    private func limit(_ number: Int, to timeout: Duration) {
        self.timers.limit(
            number, to: timeout,
            patience: { [weak self] in self?.owner?.patience(beyond: timeout) },
            expired: { [weak self] in
                guard let self, !self.isOver else { return }
                self.perform(self.machine.expired(number))
            })
    }

    // MARK: What is to be done

    func perform(_ actions: [StreamMachine.Action]) {
        for action in actions where !self.isOver { self.perform(action) }
        self.watch()
    }

    private func perform(_ action: StreamMachine.Action) {
        switch action {
        case .completeRead(let number, let data, let atEnd):
            self.completed(number, data, atEnd: atEnd, nil)
        case .completeWrite(let number): self.completed(number, nil, atEnd: false, nil)
        case .fail(let number, let code):
            self.completed(number, nil, atEnd: false, URLError(code))
        case .send(let data):
            self.plain = data
            self.isSending = true
            self.pump()
        case .shutDownWriting:
            self.isClosingWrite = true
            self.tls?.sayGoodbye()
            self.pump()
        case .readClosed: self.owner?.readClosed()
        case .writeClosed: self.owner?.writeClosed()
        case .secure: self.secure()
        case .capture(let left): self.giveAway(left)
        case .finish: self.finishWhenSent()
        case .end(let code): self.fail(code)
        }
    }

    private func completed(_ number: Int, _ data: Data?, atEnd: Bool, _ error: URLError?) {
        self.timers.cancel(number)
        self.owner?.completed(number, data, atEnd: atEnd, error)
    }

    /// Both sides are closed: over when the last byte is with the kernel.
    private func finishWhenSent() {
        self.isFinishing = true
        self.pump()
    }

    func watch() {
        guard !self.isOver, let socket = self.socket else { return }
        socket.wantReading(self.machine.wantsBytes || self.isSecuring)
    }

    // MARK: Reading

    private func readable() {
        guard !self.isOver, let socket = self.socket else { return }
        switch socket.receive(upTo: Self.pieceSize) {
        case .nothing: return
        case .failed: return self.fail(.networkConnectionLost)
        case .end:
            if self.isSecuring {
                return self.fail(
                    UpstreamFailure(.tlsProtocolError, detail: "the handshake was cut"))
            }
            // TLS that ends without saying so has been cut (RFC 8446 §6.1).
            if self.tls != nil { return self.fail(.networkConnectionLost) }
            self.perform(self.machine.ended())
        case .bytes(let bytes):
            self.owner?.counted(received: bytes.count, sent: 0)
            guard let tls = self.tls else { return self.perform(self.machine.received(bytes)) }
            guard unsafe bytes.withUnsafeBytes({ unsafe tls.feed($0) }) else {
                return self.fail(.secureConnectionFailed)
            }
            if self.isSecuring { self.handshake() } else { self.decipher(tls) }
        }
    }

    func decipher(_ tls: TLSConversation) {
        var piece = Data()
        var hasEnded = false
        loop: while true {
            switch tls.read() {
            case .bytes(let bytes): piece.append(contentsOf: bytes)
            case .nothing: break loop
            case .end:
                hasEnded = true
                break loop
            case .failed(let failure): return self.fail(failure)
            }
        }
        if !piece.isEmpty { self.perform(self.machine.received(piece)) }
        if hasEnded, !self.isOver { self.perform(self.machine.ended()) }
        // An answer to a change of keys.
        if !self.isOver { self.pump() }
    }

    // MARK: Writing

    /// Sends what the kernel takes.
    func pump() {
        guard !self.isOver, let socket = self.socket else { return }
        while true {
            if let tls = self.tls { self.outgoing.append(contentsOf: tls.takeOutput()) }
            if self.outgoing.isEmpty, !self.nextPiece() { break }
            if self.outgoing.isEmpty { continue }
            if self.machine.isPaused { return socket.wantWriting(false) }
            guard let count = socket.send(self.outgoing) else {
                return self.fail(.networkConnectionLost)
            }
            self.owner?.counted(received: 0, sent: count)
            self.outgoing = Data(self.outgoing.dropFirst(count))
            if !self.outgoing.isEmpty { return socket.wantWriting(true) }
        }
        socket.wantWriting(false)
        if self.isSending {
            self.isSending = false
            self.perform(self.machine.sent())
        }
        guard !self.isOver, !self.isSending else { return }
        if self.isClosingWrite { socket.shutDownWriting() }
        self.isClosingWrite = false
        if self.isFinishing { self.owner?.finished() }
    }

    /// Sends what ends a conversation, and waits for nothing: in the midst of something else it would be
    /// taken for a part of that.
    private func say(_ last: Data) {
        guard let socket = self.socket, !self.isSending, !self.isSecuring, !self.isClosingWrite,
            self.plain.isEmpty, self.outgoing.isEmpty
        else { return }
        guard let tls = self.tls else {
            _ = socket.send(last)
            return
        }
        guard unsafe last.withUnsafeBytes({ unsafe tls.write($0) }) else { return }
        tls.sayGoodbye()
        _ = socket.send(Data(tls.takeOutput()))
    }

    /// Makes the next piece of the write ready; false where there is none.
    private func nextPiece() -> Bool {
        guard !self.plain.isEmpty else { return false }
        let piece = Data(self.plain.prefix(Self.pieceSize))
        self.plain = self.plain.dropFirst(piece.count)
        guard let tls = self.tls else {
            self.outgoing = piece
            return true
        }
        if unsafe !piece.withUnsafeBytes({ unsafe tls.write($0) }) {
            self.plain = Data()
            self.isSending = false
            self.fail(.networkConnectionLost)
            return false
        }
        return true
    }
}
