import Foundation
import Synchronization

/// What a program reads of a captured connection.
///
/// `read` waits for bytes. It has no place in a run loop, and sends its delegate nothing.
final class CapturedInputStream: InputStream {
    private let connection: CapturedConnection
    private let status = CapturedStatus()
    private weak var listener: (any StreamDelegate)?

    init(_ connection: CapturedConnection) {
        self.connection = connection
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { self.status.now }
    override var streamError: (any Error)? { self.status.error }

    override var delegate: (any StreamDelegate)? {
        get { self.listener }
        set { self.listener = newValue }
    }

    override var hasBytesAvailable: Bool {
        self.streamStatus == .open && self.connection.isReadable
    }

    override func open() { self.status.open() }

    override func close() {
        if self.status.close() { self.connection.closeReading() }
    }

    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
        switch self.streamStatus {
        case .atEnd: return 0
        case .open: break
        default: return -1
        }
        guard len > 0 else { return 0 }
        guard let piece = self.connection.read(upTo: len) else {
            self.status.end(.error)
            return -1
        }
        guard !piece.isEmpty else {
            self.status.end(.atEnd)
            return 0
        }
        return unsafe piece.copyBytes(to: UnsafeMutableBufferPointer(start: buffer, count: len))
    }

    override func getBuffer(
        _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>,
        length len: UnsafeMutablePointer<Int>
    ) -> Bool { false }

    override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }

    override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool {
        false
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
}

/// What a program writes to a captured connection.
///
/// `write` waits until the kernel takes bytes. It has no place in a run loop, and sends its delegate
/// nothing.
final class CapturedOutputStream: OutputStream {
    private let connection: CapturedConnection?
    private let status = CapturedStatus()
    private weak var listener: (any StreamDelegate)?

    init(_ connection: CapturedConnection) {
        self.connection = connection
        super.init(toMemory: ())
    }

    /// One that leads nowhere: Foundation asks for it of each class.
    required init(toMemory: ()) {
        self.connection = nil
        super.init(toMemory: ())
    }

    override var streamStatus: Stream.Status { self.status.now }
    override var streamError: (any Error)? { self.status.error }

    override var delegate: (any StreamDelegate)? {
        get { self.listener }
        set { self.listener = newValue }
    }

    override var hasSpaceAvailable: Bool {
        self.streamStatus == .open && self.connection?.isWritable == true
    }

    override func open() { self.status.open() }

    override func close() {
        if self.status.close() { self.connection?.closeWriting() }
    }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength len: Int) -> Int {
        guard self.streamStatus == .open else { return -1 }
        guard len > 0 else { return 0 }
        let bytes = unsafe Data(bytes: buffer, count: len)
        if let count = self.connection?.write(bytes) { return count }
        self.status.end(.error)
        return -1
    }

    override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }

    override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool {
        false
    }

    override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
    override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
}

/// Where a captured stream is in its life, on whatever thread its program asks.
private final class CapturedStatus: Sendable {
    private let status = Mutex(Stream.Status.notOpen)

    var now: Stream.Status { self.status.withLock { $0 } }
    var error: (any Error)? { self.now == .error ? URLError(.networkConnectionLost) : nil }

    func open() {
        self.status.withLock { if $0 == .notOpen { $0 = .open } }
    }

    /// An open stream can do no more.
    func end(_ status: Stream.Status) {
        self.status.withLock { if $0 == .open { $0 = status } }
    }

    /// - Returns: false where it was closed before.
    func close() -> Bool {
        self.status.withLock { status in
            defer { status = .closed }
            return status != .closed
        }
    }
}
