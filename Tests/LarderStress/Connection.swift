import Glibc

/// A TCP connection over loopback, in the hands of one thread, which waits for it.
final class Connection {
    private let descriptor: Int32
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var unread = 0..<0

    /// Takes over a connected socket.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var isOn: Int32 = 1
        let size = socklen_t(MemoryLayout<Int32>.size)
        _ = unsafe setsockopt(
            descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, size)
        // Whoever waits longer waits for ever.
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        let length = socklen_t(MemoryLayout<timeval>.size)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, length)
        _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, length)
    }

    deinit {
        _ = close(self.descriptor)
    }

    private static func address(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(clamping: port)).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// Connects to a port of loopback; nil where no one listens.
    static func connect(_ port: Int) -> Connection? {
        let descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = Self.address(port)
        let code = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            _ = close(descriptor)
            return nil
        }
        return Connection(descriptor)
    }

    /// Listens on a free port of loopback: the socket, and the port.
    static func listen() throws -> (socket: Int32, port: Int) {
        let descriptor = socket(
            AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = Self.address(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard unsafe bind(descriptor, pointer, length) == 0 else { return Int32(-1) }
                return unsafe getsockname(descriptor, pointer, &length)
            }
        }
        guard code == 0, Glibc.listen(descriptor, 512) == 0 else {
            throw Wrong("listen: \(errno)")
        }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    func send(_ text: String) -> Bool { self.send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) -> Bool {
        unsafe bytes.withUnsafeBytes { unsafe self.send($0) }
    }

    func send(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var done = 0
        while done < bytes.count {
            guard let start = bytes.baseAddress else { return true }
            let count = unsafe Glibc.send(
                self.descriptor, start + done, bytes.count - done, Int32(MSG_NOSIGNAL))
            if count <= 0 { return false }
            done += count
        }
        return true
    }

    private func fill() -> Bool {
        let count = unsafe recv(self.descriptor, &self.buffer, self.buffer.count, 0)
        self.unread = 0..<max(0, count)
        return count > 0
    }

    /// The next line without its CRLF; nil at the end.
    func line() -> String? {
        var line: [UInt8] = []
        while line.count < 65_536 {
            if self.unread.isEmpty, !self.fill() { return nil }
            let rest = self.buffer[self.unread]
            if let end = rest.firstIndex(of: 10) {
                line.append(contentsOf: rest[..<end])
                self.unread = end + 1..<self.unread.upperBound
                if line.last == 13 { line.removeLast() }
                return String(decoding: line, as: UTF8.self)
            }
            line.append(contentsOf: rest)
            self.unread = 0..<0
        }
        return nil
    }

    /// Start line and fields, names in lower case; nil at the end.
    func head() -> (line: String, fields: [String: String])? {
        guard let start = self.line(), !start.isEmpty else { return nil }
        var fields: [String: String] = [:]
        while let line = self.line() {
            if line.isEmpty { return (start, fields) }
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let name = line[..<colon].lowercased()
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            fields[name] = fields[name].map { $0 + ", " + value } ?? String(value)
        }
        return nil
    }

    /// Lends up to `count` bytes, as they come; false at the end or where `body` says so.
    func read(_ count: UInt64, _ body: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        var left = count
        while left > 0 {
            if self.unread.isEmpty, !self.fill() { return false }
            let part = Int(min(left, UInt64(self.unread.count)))
            let range = self.unread.lowerBound..<self.unread.lowerBound + part
            let goesOn = unsafe self.buffer.withUnsafeBytes {
                unsafe body(UnsafeRawBufferPointer(rebasing: $0[range]))
            }
            self.unread = range.upperBound..<self.unread.upperBound
            left -= UInt64(part)
            if !goesOn { return false }
        }
        return true
    }
}
