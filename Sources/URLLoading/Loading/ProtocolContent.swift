import Foundation
import LarderHTTP
import NIOCore
import Synchronization

/// The content of a request, as a program's protocol reads it: the data in the request, or a stream.
///
/// Any thread; one reader.
final class ProtocolContent: Sendable {
    private struct State {
        var piece = ByteBuffer()
        var isAttached = false
        var isAborted = false
        var isSpent = false
        var sent: Int64 = 0
    }

    private let upload: UploadSource?
    private let observer: any LoadObserver
    private let state = Mutex(State())
    private let woken = DispatchSemaphore(value: 0)

    init(_ upload: UploadSource?, _ observer: any LoadObserver) {
        self.upload = upload
        self.observer = observer
    }

    /// The request as the protocol sees it: with the content that the session sends as its stream,
    /// unless the request has it as data already.
    func handed(to request: URLRequest) -> URLRequest {
        guard self.upload != nil, request.httpBody == nil else { return request }
        var request = request
        request.httpBodyStream = ContentStream(self)
        return request
    }

    /// The load is over: a reader that waits is told so.
    func abort() {
        guard let upload = self.upload else { return }
        self.state.withLock { $0.isAborted = true }
        upload.source.cancel()
        self.woken.signal()
    }

    var isSpent: Bool { self.state.withLock { $0.isSpent || $0.isAborted } }

    /// Reads as `InputStream` does, waiting for bytes: 0 is the end, -1 a failure.
    func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let source = self.upload?.source else { return 0 }
        self.attach(source)
        while true {
            if let count = unsafe self.take(into: room) { return count }
            switch source.next() {
            case .piece(let piece):
                self.state.withLock { $0.piece = piece }
            case .pending:
                // The program's own thread, in a method that is known to wait.
                self.woken.wait()
            case .end:
                self.state.withLock { $0.isSpent = true }
            case .failed:
                self.state.withLock { $0.isAborted = true }
            }
        }
    }

    private func attach(_ source: any BodySource) {
        let isFirst = self.state.withLock { state in
            defer { state.isAttached = true }
            return !state.isAttached
        }
        guard isFirst else { return }
        source.attach { [woken = self.woken] in woken.signal() }
    }

    /// What is there; nil: nothing yet.
    private func take(into room: UnsafeMutableRawBufferPointer) -> Int? {
        var total: Int64?
        let count = self.state.withLock { state -> Int? in
            if state.isAborted { return -1 }
            let count = min(room.count, state.piece.readableBytes)
            guard count > 0 else { return state.isSpent || room.count == 0 ? 0 : nil }
            unsafe state.piece.readWithUnsafeReadableBytes { bytes in
                unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
                return count
            }
            state.sent += Int64(count)
            total = state.sent
            return count
        }
        if let total { self.observer.load(sent: total) }
        return count
    }
}

extension URLRequest {
    /// Whether its content is a stream that a protocol was handed.
    var hasHandedContent: Bool { self.httpBodyStream is ContentStream }
}

/// The stream that a protocol finds in its request.
private final class ContentStream: InputStream {
    private let content: ProtocolContent
    private let status = Mutex(Stream.Status.notOpen)

    init(_ content: ProtocolContent) {
        self.content = content
        super.init(data: Data())
    }

    override func open() {
        self.status.withLock { if $0 == .notOpen { $0 = .open } }
    }

    override func close() {
        self.status.withLock { $0 = .closed }
    }

    override var streamStatus: Stream.Status { self.status.withLock { $0 } }

    override var hasBytesAvailable: Bool { self.streamStatus == .open && !self.content.isSpent }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int {
        guard self.streamStatus == .open, length >= 0 else {
            return self.streamStatus == .atEnd ? 0 : -1
        }
        let count = unsafe self.content.read(
            into: UnsafeMutableRawBufferPointer(start: buffer, count: length))
        if count <= 0, length > 0 {
            self.status.withLock { if $0 == .open { $0 = count == 0 ? .atEnd : .error } }
        }
        return count
    }
}
