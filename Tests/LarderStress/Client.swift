import Foundation
import Glibc
import SeededNumbers
import Synchronization

/// What all clients of a stress test have seen.
struct Tally: Sendable {
    var requests = 0
    var hits = 0
    var bytes: UInt64 = 0
    var notModified = 0
    var partial = 0
    /// Responses that broke off: the origin's doing, or that of a proxy that was ended.
    var brokenOff = 0
    /// Requests that a running proxy did not answer, or with an error of its own.
    var failures = 0
    var lastFailure = ""
    /// What must never be.
    var wrong: String?
}

/// Asks a proxy for one thing after the other, and judges every answer.
///
/// On a thread of its own.
final class Client {
    private let soak: Soak
    private var random: SplitMix64
    private var connection: Connection?
    /// The life of the proxy that the connection belongs to.
    private var connectedIn = 0
    private var port: Int { self.soak.proxyPort }

    init(_ soak: Soak, seed: UInt64) {
        self.soak = soak
        self.random = SplitMix64(seed: seed)
    }

    func run() {
        while !self.soak.isOver {
            let life = self.soak.waitUntilServing()
            guard life.isServing else { return }
            let isNew =
                self.connection == nil || self.random.below(40) == 0
                || self.connectedIn != life.number
            if isNew {
                self.connection = Connection.connect(self.port)
                self.connectedIn = life.number
            }
            guard let connection else {
                self.failed("no connection", in: life.number)
                continue
            }
            if !self.exchange(connection, life.number, isNew) { self.connection = nil }
        }
    }

    /// A failure counts where no one ended the proxy meanwhile.
    private func failed(_ what: String, in life: Int) {
        if self.soak.isStillServing(life) {
            self.soak.tally.withLock { tally in
                tally.failures += 1
                tally.lastFailure = what
            }
        }
    }

    /// A request and its answer; false where the connection is of no use any more.
    private func exchange(_ connection: Connection, _ life: Int, _ isNew: Bool) -> Bool {
        let origin = self.soak.origin
        // A few are asked for again and again, most hardly ever.
        let draw = Double(self.random.below(1 << 20)) / Double(1 << 20)
        let key = Int(Double(origin.keys) * draw * draw * draw)
        let current = origin.version(key)
        let length = Content.length(key, current)
        var request = Request(key: key)
        switch self.random.below(100) {
        case 0..<2: request.method = "POST"
        case 2..<5: request.method = "HEAD"
        case 5..<10: request.tag = "\"\(key)-\(current)\""
        case 10..<28 where length > 1:
            let first = UInt64.random(in: 0..<length, using: &self.random)
            let last = UInt64.random(in: first..<length, using: &self.random)
            request.range = "bytes=\(first)-\(self.random.below(4) == 0 ? "" : "\(last)")"
        case 28..<32: request.leavesAfter = self.random.below(200_000)
        default: break
        }
        request.begun = .now
        request.floor = self.soak.floor(of: key)
        let text =
            "\(request.method) \(origin.url(key)) HTTP/1.1\r\nHost: 127.0.0.1:\(origin.port)\r\n"
            + (request.tag.map { "If-None-Match: \($0)\r\n" } ?? "")
            + (request.range.map { "Range: \($0)\r\n" } ?? "")
            + (request.method == "POST" ? "Content-Length: 3\r\n\r\nabc" : "\r\n")
        guard connection.send(text), let (line, fields) = connection.head() else {
            // An idle connection may be closed at any time (RFC 9112 §9.5).
            if isNew { self.failed("no answer", in: life) }
            return false
        }
        return self.judge(connection, request, line, fields, life)
    }

    struct Request {
        var key: Int
        var method = "GET"
        var tag: String?
        var range: String?
        /// Leaves after so many bytes of the body.
        var leavesAfter: UInt64?
        var begun = ContinuousClock.Instant.now
        /// The least version that may be given.
        var floor: UInt64 = 0
    }

    private func judge(
        _ connection: Connection, _ request: Request, _ line: String, _ fields: [String: String],
        _ life: Int
    ) -> Bool {
        let words = line.split(separator: " ")
        let status = words.count > 1 ? Int(words[1]) ?? 0 : 0
        let isHit = fields["cache-status"]?.contains("larder; hit") ?? false
        self.soak.tally.withLock { tally in
            tally.requests += 1
            if isHit { tally.hits += 1 }
            if status == 304 { tally.notModified += 1 }
            if status == 206 { tally.partial += 1 }
        }
        switch status {
        case 200, 206:
            return self.judgeBody(connection, request, fields, status, life)
        case 204, 304:
            if status == 304, request.tag == nil { self.wrong("304 to no condition", request) }
            return true
        case 416:
            let length = UInt64(fields["content-length"] ?? "0") ?? 0
            return unsafe connection.read(length) { _ in true }
        default:
            self.failed("\(line) for \(request.method) /\(request.key)", in: life)
            return false
        }
    }

    private func wrong(_ what: String, _ request: Request) {
        self.soak.stop("\(what): \(request)")
    }

    private func judgeBody(
        _ connection: Connection, _ request: Request, _ fields: [String: String], _ status: Int,
        _ life: Int
    ) -> Bool {
        let key = request.key
        guard let tag = fields["etag"], tag.hasPrefix("\"\(key)-"),
            let version = UInt64(tag.dropFirst("\"\(key)-".count).dropLast())
        else {
            self.wrong("ETag \(fields["etag"] ?? "none")", request)
            return false
        }
        let length = Content.length(key, version)
        var range = 0..<length
        if status == 206 {
            // The whole may be of unknown length to who has stored a part.
            guard let asked = request.range, let part = Origin.range(asked, of: length),
                [String(length), "*"].contains(where: {
                    fields["content-range"]
                        == "bytes \(part.lowerBound)-\(part.upperBound - 1)/\($0)"
                })
            else {
                self.wrong("206 with \(fields["content-range"] ?? "nothing")", request)
                return false
            }
            range = part
        }
        self.judgeAge(version, request)
        if request.method == "HEAD" { return true }
        var place = range.lowerBound
        var isRight = true
        let take = { (bytes: UnsafeRawBufferPointer) -> Bool in
            let end = place + UInt64(bytes.count)
            isRight =
                end <= range.upperBound
                && (unsafe Content.matches(bytes, key, version, from: place))
            place = end
            return isRight && request.leavesAfter.map { place - range.lowerBound < $0 } ?? true
        }
        let isWhole = unsafe self.body(connection, fields, take)
        self.soak.tally.withLock { $0.bytes += place - range.lowerBound }
        if !isRight { self.wrong("wrong bytes before \(place) of version \(version)", request) }
        if isWhole, place != range.upperBound {
            self.wrong("ended at \(place) of \(range), version \(version)", request)
        }
        if !isWhole, request.leavesAfter == nil {
            self.soak.tally.withLock { $0.brokenOff += 1 }
        }
        return isWhole && isRight
    }

    private func body(
        _ connection: Connection, _ fields: [String: String],
        _ take: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool {
        if let length = fields["content-length"].flatMap({ UInt64($0) }) {
            return unsafe connection.read(length, take)
        }
        while let line = connection.line(), let size = UInt64(line, radix: 16) {
            if size == 0 { return connection.line() == "" }
            guard unsafe connection.read(size, take), connection.line() == "" else { return false }
        }
        return false
    }

    /// No answer is staler than its lifetime allows, or older than the last purge.
    private func judgeAge(_ version: UInt64, _ request: Request) {
        let origin = self.soak.origin
        if version > origin.version(request.key) { self.wrong("version \(version)", request) }
        if version < request.floor {
            self.wrong("version \(version) after a purge at \(request.floor)", request)
        }
        // `Age` counts whole seconds, and a busy machine is slow.
        let allowance = Duration.seconds(origin.lifetime(request.key) + 5)
        if let end = origin.end(of: version, request.key), request.begun > end + allowance {
            self.wrong("version \(version), stale for \(request.begun - end)", request)
        }
    }
}
