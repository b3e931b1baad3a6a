import Foundation
import Glibc
import Synchronization

/// An origin of one line an answer, and the client that asks for it: plain sockets on loopback.
final class TextOrigin: Sendable {
    let port: UInt16
    private let listener: Int32
    private let heads = Mutex<[String]>([])

    /// The heads of the requests that came.
    var received: [String] { self.heads.withLock { $0 } }

    /// - Parameters:
    ///   - answer: gets the head of a request; gives a whole response.
    ///   - left: hears that the other side has closed a connection, which is kept open until then;
    ///     nil: each is closed behind its response.
    init(
        _ answer: @escaping @Sendable (String) -> String, left: (@Sendable () -> Void)? = nil
    ) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(listener, $0, size) == 0 && listen(listener, 16) == 0
                    && getsockname(listener, $0, &size) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        self.listener = listener
        self.port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                let head = Self.read(client) { $0.contains("\r\n\r\n") }
                self.heads.withLock { $0.append(head) }
                Self.write(client, answer(head))
                if let left {
                    _ = Self.read(client) { _ in false }
                    left()
                }
                close(client)
            }
        }
    }

    /// Ends the thread, which waits in accept(2).
    func stop() {
        shutdown(self.listener, Int32(SHUT_RDWR))
        close(self.listener)
    }

    /// Sends a request through a proxy; gives the whole response.
    static func ask(_ proxy: UInt16, _ request: String) async -> String {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(client) }
                var address = Self.loopback(proxy)
                let size = socklen_t(MemoryLayout<sockaddr_in>.size)
                let isConnected = unsafe withUnsafeMutablePointer(to: &address) { pointer in
                    unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        unsafe connect(client, $0, size) == 0
                    }
                }
                guard isConnected else { return continuation.resume(returning: "") }
                Self.write(client, request)
                continuation.resume(returning: Self.read(client) { _ in false })
            }
        }
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func read(_ file: Int32, until isEnough: (String) -> Bool) -> String {
        var text = ""
        var piece = [UInt8](repeating: 0, count: 4096)
        while !isEnough(text) {
            let count = unsafe recv(file, &piece, piece.count, 0)
            guard count > 0 else { break }
            text += String(decoding: piece[..<count], as: UTF8.self)
        }
        return text
    }

    private static func write(_ file: Int32, _ text: String) {
        let bytes = Array(text.utf8)
        _ = unsafe send(file, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
