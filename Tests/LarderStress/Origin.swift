import Foundation
import Glibc
import LarderHTTP
import NIOCore
import SeededNumbers
import Synchronization

/// An origin whose representations change all the time; each says which version it is.
final class Origin: Sendable {
    private struct State {
        var versions: [UInt64]
        /// When each version took the place of the one before it, by its number.
        var changes: [[ContinuousClock.Instant]]
        var requests = 0
    }

    let keys: Int
    let port: Int
    private let socket: Int32
    private let state: Mutex<State>
    private let seed: UInt64

    init(keys: Int, seed: UInt64) throws {
        self.keys = keys
        self.seed = seed
        (self.socket, self.port) = try Connection.listen()
        self.state = Mutex(
            State(
                versions: Array(repeating: 1, count: keys),
                changes: Array(repeating: [.now, .now], count: keys)))
    }

    /// Answers on a thread for each connection, until the process ends.
    func start() {
        Thread.detachNewThread { [self] in
            while true {
                let accepted = accept(self.socket, nil, nil)
                guard accepted >= 0 else { continue }
                Thread.detachNewThread { self.serve(Connection(accepted), UInt64(accepted)) }
            }
        }
    }

    func url(_ key: Int) -> String { "http://127.0.0.1:\(self.port)/\(key)" }
    func version(_ key: Int) -> UInt64 { self.state.withLock { $0.versions[key] } }
    var requests: Int { self.state.withLock { $0.requests } }

    /// How long a response to this URL is fresh.
    func lifetime(_ key: Int) -> Int { [1, 2, 600, 30][key % 4] }

    func change(_ key: Int) {
        self.state.withLock { state in
            state.versions[key] += 1
            state.changes[key].append(.now)
        }
    }

    /// Since when a version is not the current one any more; nil for the current one and for one
    /// that never was.
    func end(of version: UInt64, _ key: Int) -> ContinuousClock.Instant? {
        self.state.withLock { state in
            version < state.versions[key] ? state.changes[key][Int(version) + 1] : nil
        }
    }

    private func serve(_ connection: Connection, _ number: UInt64) {
        var random = SplitMix64(seed: self.seed ^ number &* 77)
        while let (line, fields) = connection.head() {
            let words = line.split(separator: " ")
            guard words.count == 3, let key = Int(words[1].dropFirst()), key < self.keys else {
                return
            }
            self.state.withLock { $0.requests += 1 }
            if words[0] == "POST" {
                guard
                    unsafe connection.read(
                        UInt64(fields["content-length"] ?? "0") ?? 0, { _ in true })
                else { return }
                self.change(key)
                guard connection.send("HTTP/1.1 204 No Content\r\n\r\n") else { return }
                continue
            }
            guard self.answer(connection, key, fields, isHead: words[0] == "HEAD", &random) else {
                return
            }
        }
    }

    private func answer(
        _ connection: Connection, _ key: Int, _ fields: [String: String], isHead: Bool,
        _ random: inout SplitMix64
    ) -> Bool {
        let version = self.version(key)
        let tag = "\"\(key)-\(version)\""
        let length = Content.length(key, version)
        let shared =
            "ETag: \(tag)\r\nCache-Control: max-age=\(self.lifetime(key))\r\n"
            + "X-Filling: \(random.next())\r\n"
        if let known = fields["if-none-match"], known.contains(tag) {
            return connection.send("HTTP/1.1 304 Not Modified\r\n\(shared)\r\n")
        }
        var range = 0..<length
        var status = "200 OK"
        var framing = "Content-Length: \(length)\r\n"
        if let asked = fields["range"], fields["if-range"].map({ $0 == tag }) ?? true {
            guard let part = Self.range(asked, of: length) else {
                return connection.send(
                    "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */\(length)\r\n"
                        + "Content-Length: 0\r\n\r\n")
            }
            range = part
            status = "206 Partial Content"
            framing =
                "Content-Range: bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)\r\n"
                + "Content-Length: \(part.upperBound - part.lowerBound)\r\n"
        }
        let isChunked = status.hasPrefix("200") && random.below(5) == 0 && !isHead
        if isChunked { framing = "Transfer-Encoding: chunked\r\n" }
        guard connection.send("HTTP/1.1 \(status)\r\n\(shared)\(framing)\r\n") else { return false }
        if isHead { return true }
        // Now and then it breaks off.
        var end = range.upperBound
        let breaksOff = random.below(50) == 0 && range.upperBound > range.lowerBound
        if breaksOff { end = UInt64.random(in: range, using: &random) }
        return self.send(connection, key, version, range.lowerBound..<end, isChunked)
            && !breaksOff
            && (!isChunked || connection.send("0\r\n\r\n"))
    }

    private func send(
        _ connection: Connection, _ key: Int, _ version: UInt64, _ range: Range<UInt64>,
        _ isChunked: Bool
    ) -> Bool {
        var place = range.lowerBound
        while place < range.upperBound {
            let end = min(range.upperBound, place + 65_536)
            let piece = Content.bytes(key, version, place..<end)
            if isChunked, !connection.send(String(end - place, radix: 16) + "\r\n") { return false }
            guard unsafe piece.withUnsafeReadableBytes({ unsafe connection.send($0) }) else {
                return false
            }
            if isChunked, !connection.send("\r\n") { return false }
            place = end
        }
        return true
    }

    /// `bytes=A-B` or `bytes=A-`, as far as there is something of it.
    static func range(_ text: String, of length: UInt64) -> Range<UInt64>? {
        guard text.hasPrefix("bytes=") else { return nil }
        let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = UInt64(ends[0]), first < length else { return nil }
        guard let last = UInt64(ends[1]) else { return first..<length }
        return last >= first ? first..<min(length, last + 1) : nil
    }
}
