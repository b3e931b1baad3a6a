import Dispatch
import Foundation
import Glibc
import Synchronization

/// What reading gives that does not wait.
enum StreamPiece: Sendable {
    case bytes(Data)
    /// Not now.
    case nothing
    case end
    case failed
}

/// A connected, non-blocking socket, and when it is ready; closed exactly once.
///
/// Not `Sendable`: belongs to the queue on which it tells.
final class StreamSocket {
    private let descriptor: Int32
    private let reading: ReadinessSource
    private let writing: ReadinessSource
    private let closing: StreamClosing
    private var isClosed = false

    init(
        _ descriptor: Int32, queue: DispatchQueue, readable: @escaping @Sendable () -> Void,
        writable: @escaping @Sendable () -> Void
    ) {
        self.descriptor = descriptor
        let closing = StreamClosing(descriptor)
        self.closing = closing
        self.reading = ReadinessSource(
            DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue),
            ready: readable, closed: { closing.sourceEnded() })
        self.writing = ReadinessSource(
            DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: queue),
            ready: writable, closed: { closing.sourceEnded() })
    }

    deinit { self.close() }

    func wantReading(_ isWanted: Bool) {
        if !self.isClosed { self.reading.want(isWanted) }
    }

    func wantWriting(_ isWanted: Bool) {
        if !self.isClosed { self.writing.want(isWanted) }
    }

    func receive(upTo count: Int) -> StreamPiece {
        self.isClosed ? .end : SocketCalls.receive(self.descriptor, upTo: count)
    }

    /// How many bytes the kernel took, perhaps none; nil: the connection is gone.
    func send(_ bytes: Data) -> Int? {
        self.isClosed ? nil : SocketCalls.send(bytes, to: self.descriptor)
    }

    func shutDownWriting() {
        // Fails where the connection is gone, as reading will show.
        if !self.isClosed { _ = shutdown(self.descriptor, Int32(SHUT_WR)) }
    }

    func close() {
        guard !self.isClosed else { return }
        self.isClosed = true
        self.reading.cancel()
        self.writing.cancel()
    }

    /// Lets go of the socket, and leaves it open.
    ///
    /// - Parameter then: gets it, once, when the kernel is no longer asked about it.
    func handOver(_ then: @escaping @Sendable (Int32) -> Void) {
        guard !self.isClosed else { return }
        self.closing.become(then)
        self.close()
    }
}

/// What becomes of a descriptor when neither source asks about it any more.
private final class StreamClosing: Sendable {
    private struct State {
        var sources = 2
        var heir: (@Sendable (Int32) -> Void)?
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    func become(_ heir: @escaping @Sendable (Int32) -> Void) {
        self.state.withLock { $0.heir = heir }
    }

    func sourceEnded() {
        let (isLast, heir) = self.state.withLock { state in
            state.sources -= 1
            return (state.sources == 0, state.heir.take())
        }
        guard isLast else {
            if let heir { self.become(heir) }
            return
        }
        if let heir { heir(self.descriptor) } else { _ = Glibc.close(self.descriptor) }
    }
}

/// The calls that read and write sockets without waiting.
enum SocketCalls {
    static func receive(_ socket: Int32, upTo count: Int) -> StreamPiece {
        while true {
            var bytes = Data(count: count)
            let result = unsafe bytes.withUnsafeMutableBytes {
                unsafe recv(socket, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
            }
            if result > 0 { return .bytes(bytes.prefix(result)) }
            if result == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN: return .nothing
            default: return .failed
            }
        }
    }

    static func send(_ bytes: Data, to socket: Int32) -> Int? {
        let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        while true {
            let result = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.send(socket, $0.baseAddress, $0.count, flags)
            }
            if result >= 0 { return result }
            switch errno {
            case EINTR: continue
            case EAGAIN: return 0
            default: return nil
            }
        }
    }
}
