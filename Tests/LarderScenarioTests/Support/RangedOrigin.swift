@testable import LarderProcess

@testable import LarderProcess

/// What an origin has, and how it behaves about ranges (RFC 9110 §14).
struct RangedContent: Sendable {
    var content: [UInt8]
    var tag = "\"one\""
    /// Requests are answered with so many bytes of content, and then the connection is cut; the
    /// first for the next request.
    var cuts: [Int] = []

    /// Bytes that are not alike in any two places.
    init(_ length: Int, seed: UInt64 = 1) {
        var state = seed
        var content: [UInt8] = []
        content.reserveCapacity(length + 8)
        while content.count < length {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                content.append(UInt8(truncatingIfNeeded: state >> shift))
            }
        }
        self.content = Array(content.prefix(length))
    }

    /// The one range that a request asks for, if it is to have it.
    private func range(of request: Message) -> Range<Int>? {
        guard let asked = request["Range"], asked.hasPrefix("bytes="), !asked.contains(","),
            request["If-Range"] ?? self.tag == self.tag
        else { return nil }
        let ends = asked.dropFirst(6).split(
            separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        let count = self.content.count
        if ends[0].isEmpty { return Int(ends[1]).map { max(0, count - $0)..<count } }
        guard let first = Int(ends[0]), first < count else { return nil }
        return first..<min(Int(ends[1]) ?? count - 1, count - 1) + 1
    }

    func response(to request: Message) -> (head: String, content: ArraySlice<UInt8>) {
        let range = self.range(of: request)
        var head = "HTTP/1.1 \(range == nil ? "200 OK" : "206 Partial Content")\r\n"
        head += "Cache-Control: max-age=600\r\nETag: \(self.tag)\r\nContent-Type: text/x-test\r\n"
        if let range {
            head += "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/"
            head += "\(self.content.count)\r\n"
        }
        let content = range.map { self.content[$0] } ?? self.content[...]
        return (head + "Content-Length: \(content.count)\r\n\r\n", content)
    }
}

extension Scene {
    /// Plays a scenario on an origin that knows ranges.
    static func ranged(
        _ content: RangedContent, _ settings: String,
        _ body: (Scene, Event<RangedContent>) async throws -> Void
    ) async throws {
        let state = Event(content)
        try await Self.scripted(settings) { connection in
            while let request = try await connection.request() {
                let (answer, cut) = state.change { state in
                    let cut = state.cuts.isEmpty ? nil : state.cuts.removeFirst()
                    return (state.response(to: request), cut)
                }
                try await connection.send(answer.head)
                var rest = answer.content.prefix(cut ?? answer.content.count)
                while !rest.isEmpty {
                    try await connection.wire.send(Array(rest.prefix(1 << 18)))
                    rest = rest.dropFirst(1 << 18)
                }
                if cut != nil { return }
            }
        } _: { scene in
            try await body(scene, state)
        }
    }

    /// The ranges that the origin was asked for; nil for a whole.
    var askedRanges: [String?] { self.origin.requests.value.map { $0["Range"] } }

    func get(_ path: String, range: String) async throws -> Message {
        try await self.send("GET", path, ["Range: bytes=\(range)"])
    }

    /// Waits until all of a range is stored.
    func held(_ path: String, range: String? = nil) async throws {
        let fields =
            (range.map { ["Range: bytes=\($0)"] } ?? [])
            + ["Cache-Control: only-if-cached, max-stale"]
        for _ in 0..<500 {
            let status = try await self.send("GET", path, fields).status
            if status == (range == nil ? 200 : 206) { return }
        }
        throw TimedOut(description: "\(path) \(range ?? "whole") was never stored")
    }
}
