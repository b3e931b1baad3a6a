import Foundation
import Glibc
import LarderTransfer
import Synchronization

/// The connection of a stream task in the hands of a program, who reads and writes it by streams.
///
/// The threads that wait here are the program's own: to wait is what `InputStream.read` and
/// `OutputStream.write` are for. No lock is held meanwhile. Closed with the last of the two streams.
///
/// Unchecked: TLS and what has been read are used under the lock alone.
final class CapturedConnection: @unchecked Sendable {
    private let descriptor: Int32
    private let lock = Mutex(())
    private let tls: TLSConversation?
    private var left: Data
    private var outgoing = Data()
    private var hasEnded = false
    private var hasFailed = false

    /// Takes possession of the descriptor.
    init(_ descriptor: Int32, _ tls: TLSConversation?, _ left: Data) {
        self.descriptor = descriptor
        self.tls = tls
        self.left = left
    }

    deinit { _ = Glibc.close(self.descriptor) }

    // MARK: Reading

    /// Whether a read would not wait.
    var isReadable: Bool {
        if self.lock.withLock({ _ in self.hasEnded || self.hasFailed || !self.left.isEmpty }) {
            return true
        }
        return self.wait(for: Int16(POLLIN), milliseconds: 0)
    }

    /// Waits for bytes; empty at the end, nil where the connection has failed.
    func read(upTo count: Int) -> Data? {
        while true {
            let result = self.lock.withLock { _ in self.piece(upTo: count) }
            switch result {
            case .bytes(let bytes): return bytes
            case .end: return Data()
            case .failed: return nil
            case .nothing:
                guard self.wait(for: Int16(POLLIN), milliseconds: -1) else { return nil }
            }
        }
    }

    private func piece(upTo count: Int) -> StreamPiece {
        if self.left.isEmpty { self.receive() }
        guard self.left.isEmpty else {
            let piece = Data(self.left.prefix(count))
            self.left = Data(self.left.dropFirst(piece.count))
            return .bytes(piece)
        }
        return self.hasFailed ? .failed : self.hasEnded ? .end : .nothing
    }

    private func receive() {
        guard !self.hasEnded, !self.hasFailed else { return }
        switch SocketCalls.receive(self.descriptor, upTo: StreamConnection.pieceSize) {
        case .nothing: return
        case .failed: self.hasFailed = true
        // TLS that ends without saying so has been cut.
        case .end: if self.tls == nil { self.hasEnded = true } else { self.hasFailed = true }
        case .bytes(let bytes):
            guard let tls = self.tls else { return self.left = bytes }
            guard unsafe bytes.withUnsafeBytes({ unsafe tls.feed($0) }) else {
                return self.hasFailed = true
            }
            self.decipher(tls)
        }
    }

    private func decipher(_ tls: TLSConversation) {
        while true {
            switch tls.read() {
            case .bytes(let bytes): self.left.append(contentsOf: bytes)
            case .nothing: return
            case .end: return self.hasEnded = true
            case .failed: return self.hasFailed = true
            }
        }
    }

    // MARK: Writing

    /// Whether a write would not wait.
    var isWritable: Bool { self.wait(for: Int16(POLLOUT), milliseconds: 0) }

    /// Waits until some of the bytes are with the kernel; nil where the connection has failed.
    func write(_ bytes: Data) -> Int? {
        guard let tls = self.tls else {
            while true {
                guard let count = SocketCalls.send(bytes, to: self.descriptor) else { return nil }
                if count > 0 || bytes.isEmpty { return count }
                guard self.wait(for: Int16(POLLOUT), milliseconds: -1) else { return nil }
            }
        }
        let piece = bytes.prefix(StreamConnection.pieceSize)
        let isTaken = self.lock.withLock { _ in
            unsafe piece.withUnsafeBytes { unsafe tls.write($0) }
        }
        return isTaken && self.flush(tls) ? piece.count : nil
    }

    private func flush(_ tls: TLSConversation) -> Bool {
        while true {
            let isDone = self.lock.withLock { _ -> Bool? in
                self.outgoing.append(contentsOf: tls.takeOutput())
                guard !self.outgoing.isEmpty else { return true }
                guard let count = SocketCalls.send(self.outgoing, to: self.descriptor) else {
                    return nil
                }
                self.outgoing = Data(self.outgoing.dropFirst(count))
                return self.outgoing.isEmpty
            }
            guard let isDone else { return false }
            if isDone { return true }
            guard self.wait(for: Int16(POLLOUT), milliseconds: -1) else { return false }
        }
    }

    // MARK: The end

    /// Whoever waits for it wakes.
    func closeReading() { _ = shutdown(self.descriptor, Int32(SHUT_RD)) }

    func closeWriting() {
        if let tls = self.tls {
            let goodbye = self.lock.withLock { _ in
                tls.sayGoodbye()
                return self.outgoing + tls.takeOutput()
            }
            // Not waited for: a peer that takes nothing would hold up the close.
            _ = SocketCalls.send(goodbye, to: self.descriptor)
        }
        _ = shutdown(self.descriptor, Int32(SHUT_WR))
    }

    private func wait(for events: Int16, milliseconds: Int32) -> Bool {
        while true {
            var entry = pollfd(fd: self.descriptor, events: events, revents: 0)
            let count = unsafe poll(&entry, 1, milliseconds)
            if count >= 0 { return count > 0 }
            guard errno == EINTR else { return false }
        }
    }
}
