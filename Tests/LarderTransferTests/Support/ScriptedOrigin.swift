import Foundation
import Glibc
import Synchronization
import Testing

/// An origin on loopback that does what a test says: the script runs once for each connection, on a
/// thread of its own, over a blocking socket.
final class ScriptedOrigin: Sendable {
    typealias Script = @Sendable (OriginConnection) -> Void

    private let listener: Listener
    let port: UInt16
    private let accepted = Mutex(0)

    var connectionCount: Int { self.accepted.withLock { $0 } }

    init(_ script: @escaping Script) throws {
        let (listener, port) = try Self.listen()
        self.listener = Listener(listener)
        self.port = port
        self.serve(script)
    }

    deinit {
        _ = shutdown(self.listener.descriptor, Int32(SHUT_RDWR))
    }

    /// Closed when neither the origin nor the thread that accepts has it any more.
    private final class Listener: Sendable {
        let descriptor: Int32

        init(_ descriptor: Int32) {
            self.descriptor = descriptor
        }

        deinit {
            _ = Glibc.close(self.descriptor)
        }
    }

    private func serve(_ script: @escaping Script) {
        let listener = self.listener
        Thread.detachNewThread { [weak self] in
            while true {
                let socket = accept(listener.descriptor, nil, nil)
                guard socket >= 0 else { break }
                guard let origin = self else {
                    _ = close(socket)
                    break
                }
                let index = origin.accepted.withLock { count in
                    count += 1
                    return count - 1
                }
                Thread.detachNewThread {
                    script(OriginConnection(socket, index: index))
                }
            }
        }
    }

    /// A socket that listens on a free port of 127.0.0.1.
    static func listen() throws -> (Int32, UInt16) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        try #require(listener >= 0)
        let port = try #require(Self.bind(listener))
        try #require(Glibc.listen(listener, 128) == 0)
        return (listener, port)
    }

    /// Binds a socket to a free port of 127.0.0.1; nil where that fails.
    static func bind(_ socket: Int32) -> UInt16? {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe Glibc.bind(socket, generic, size) == 0
                    && getsockname(socket, generic, &size) == 0
            }
        }
        return bound ? UInt16(bigEndian: address.sin_port) : nil
    }
}

/// One connection of a scripted origin.
///
/// Blocking; gives up after ten seconds.
final class OriginConnection: Sendable {
    /// How many connections were accepted before.
    let index: Int
    private let socket: Int32
    private let state = Mutex(State())

    private struct State {
        var buffer: [UInt8] = []
        var isClosed = false
    }

    init(_ socket: Int32, index: Int) {
        self.socket = socket
        self.index = index
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        _ = unsafe setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        _ = unsafe setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    }

    deinit {
        _ = Glibc.close(self.socket)
    }

    /// The next head, from request line to empty line; nil at the end of the connection.
    func readHead() -> String? {
        let end = Array("\r\n\r\n".utf8)
        while true {
            let head = self.state.withLock { state -> String? in
                guard state.buffer.count >= 4 else { return nil }
                for i in 0...(state.buffer.count - 4)
                where state.buffer[i..<i + 4].elementsEqual(end) {
                    let head = String(decoding: state.buffer[..<(i + 4)], as: UTF8.self)
                    state.buffer.removeFirst(i + 4)
                    return head
                }
                return nil
            }
            if let head { return head }
            guard self.receive() else { return nil }
        }
    }

    /// A line without its end.
    func readLine() -> String? {
        while true {
            let line = self.state.withLock { state -> String? in
                guard let end = state.buffer.firstIndex(of: 0x0A) else { return nil }
                let line = String(decoding: state.buffer[..<end], as: UTF8.self)
                state.buffer.removeFirst(end + 1)
                return line.trimmingCharacters(in: .newlines)
            }
            if let line { return line }
            guard self.receive() else { return nil }
        }
    }

    func read(_ count: Int) -> String? {
        while self.state.withLock({ $0.buffer.count < count }) {
            guard self.receive() else { return nil }
        }
        return self.state.withLock { state in
            defer { state.buffer.removeFirst(count) }
            return String(decoding: state.buffer[..<count], as: UTF8.self)
        }
    }

    func readRaw(_ count: Int) -> [UInt8]? {
        while self.state.withLock({ $0.buffer.count < count }) {
            guard self.receive() else { return nil }
        }
        return self.state.withLock { state in
            defer { state.buffer.removeFirst(count) }
            return Array(state.buffer[..<count])
        }
    }

    /// Passes bytes between this connection and a port of this machine until both have ended.
    ///
    /// - Parameter dropsAlerts: what comes back is TLS up to 1.2, whose alerts are left out.
    func relay(to port: UInt16, dropsAlerts: Bool = false) {
        let far = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let connected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(far, $0, size) == 0
            }
        }
        guard connected else { return self.close() }
        let other = OriginConnection(far, index: -1)
        Thread.detachNewThread {
            if dropsAlerts { other.pumpWithoutAlerts(to: self) } else { other.pump(to: self) }
        }
        self.pump(to: other)
    }

    private func pump(to other: OriginConnection) {
        repeat {
            let bytes = self.state.withLock { state in
                defer { state.buffer = [] }
                return state.buffer
            }
            if !bytes.isEmpty, !other.write(bytes) { break }
        } while self.receive()
        _ = shutdown(other.socket, Int32(SHUT_WR))
    }

    /// Passes on all TLS records but alerts (RFC 5246 §6.2.1).
    private func pumpWithoutAlerts(to other: OriginConnection) {
        while let head = self.readRaw(5),
            let content = self.readRaw(Int(head[3]) << 8 | Int(head[4]))
        {
            if head[0] != 21, !other.write(head + content) { break }
        }
        _ = shutdown(other.socket, Int32(SHUT_WR))
    }

    /// Chunks as they came, to the end of the trailer section.
    func readChunked() -> String? {
        var all = ""
        while let line = self.readLine() {
            all += line + "|"
            guard let size = Int(line, radix: 16) else { return nil }
            if size == 0 { break }
            guard let chunk = self.read(size), self.readLine() != nil else { return nil }
            all += chunk + "|"
        }
        while let line = self.readLine(), !line.isEmpty { all += line + "|" }
        return all
    }

    /// Whether the peer closed (or reset) within ten seconds, reading whatever it sends till then.
    func waitForEnd() -> Bool {
        while self.receive() {}
        return errno != EAGAIN
    }

    private func receive() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        errno = 0
        let count = unsafe recv(self.socket, &bytes, bytes.count, 0)
        guard count > 0 else { return false }
        self.state.withLock { $0.buffer.append(contentsOf: bytes[..<count]) }
        return true
    }

    @discardableResult
    func write(_ text: String) -> Bool {
        self.write(Array(text.utf8))
    }

    @discardableResult
    func write(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes[sent...].withUnsafeBytes { part in
                unsafe send(self.socket, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// Writes until the peer takes no more for `milliseconds`; how many bytes it took.
    func writeUntilStuck(_ piece: [UInt8], most: Int, milliseconds: Int32) -> Int {
        var sent = 0
        while sent < most {
            var poller = pollfd(fd: self.socket, events: Int16(POLLOUT), revents: 0)
            guard unsafe poll(&poller, 1, milliseconds) > 0 else { break }
            let count = unsafe send(
                self.socket, piece, min(piece.count, most - sent),
                Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            guard count > 0 else { break }
            sent += count
        }
        return sent
    }

    /// Ends the connection.
    ///
    /// Its number stays taken: a script that goes on would else read what is somebody else's.
    func close() {
        self.state.withLock { state in
            guard !state.isClosed else { return }
            state.isClosed = true
            let nothing = unsafe open("/dev/null", O_RDWR | O_CLOEXEC)
            guard nothing >= 0 else { return }
            _ = dup2(nothing, self.socket)
            _ = Glibc.close(nothing)
        }
    }

    /// Ends with a TCP reset instead of an orderly end.
    func reset() {
        var linger = linger(l_onoff: 1, l_linger: 0)
        let size = socklen_t(MemoryLayout.size(ofValue: linger))
        _ = unsafe setsockopt(self.socket, SOL_SOCKET, SO_LINGER, &linger, size)
        self.close()
    }
}
