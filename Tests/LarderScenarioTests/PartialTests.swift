import Testing

@testable import LarderProcess

@Suite(
    "Partial content through a whole proxy (RFC 9110 §14, RFC 9111 §3.4)", .timeLimit(.minutes(10)))
struct PartialTests {
    /// Where the parts are stored.
    static let tiers = [
        "",
        "sessions: {default: {kind: ephemeral, cache: {memory: 256 MiB, memory-object: 64 MiB}}}",
    ]

    @Test("A range is a hit, and any inside it, from whichever side it is named", arguments: tiers)
    func hits(_ tier: String) async throws {
        let content = RangedContent(100_000)
        try await Scene.ranged(content, tier) { scene, _ in
            let miss = try await scene.get("/a", range: "50000-99999")
            #expect(miss.status == 206)
            #expect(
                miss["Cache-Status"]
                    == "larder; fwd=uri-miss; fwd-status=206; stored; detail=nothing-stored")
            #expect(miss.body == Array(content.content[50_000...]))
            try await scene.held("/a", range: "50000-99999")
            for (asked, range) in [
                ("50000-99999", 50_000..<100_000), ("60000-60009", 60_000..<60_010),
                ("-10", 99_990..<100_000), ("99999-", 99_999..<100_000),
            ] {
                let hit = try await scene.get("/a", range: asked)
                #expect(hit.status == 206)
                #expect(hit["Cache-Status"]?.hasPrefix("larder; hit") == true)
                #expect(
                    hit["Content-Range"]
                        == "bytes \(range.lowerBound)-\(range.upperBound - 1)/100000")
                #expect(hit["Content-Length"] == "\(range.count)")
                #expect(hit["Content-Type"] == "text/x-test")
                #expect(hit.body == Array(content.content[range]))
            }
            let beyond = try await scene.get("/a", range: "100000-")
            #expect(beyond.status == 416)
            #expect(beyond["Content-Range"] == "bytes */100000")
            let head = try await scene.send("HEAD", "/a")
            #expect(head["Content-Length"] == "100000")
            #expect(scene.origin.count == 1)
        }
    }

    @Test("Two parts of several MiB make the whole, and the origin is not asked", arguments: tiers)
    func adjacent(_ tier: String) async throws {
        let content = RangedContent(6 << 20)
        try await Scene.ranged(content, tier) { scene, _ in
            for range in ["0-3999999", "4000000-\((6 << 20) - 1)"] {
                #expect(try await scene.get("/a", range: range).status == 206)
                try await scene.held("/a", range: range)
            }
            let whole = try await scene.get("/a")
            #expect(whole.status == 200)
            #expect(whole["Cache-Status"]?.hasPrefix("larder; hit") == true)
            #expect(whole["Content-Range"] == nil)
            #expect(whole.body == content.content)
            #expect(scene.origin.count == 2)
        }
    }

    @Test("Of a whole of several MiB exactly the missing bytes are fetched", arguments: tiers)
    func gaps(_ tier: String) async throws {
        let content = RangedContent(8 << 20)
        try await Scene.ranged(content, tier) { scene, _ in
            for range in ["0-1999999", "4000000-4999999", "7000000-8388607"] {
                _ = try await scene.get("/a", range: range)
                try await scene.held("/a", range: range)
            }
            let whole = try await scene.get("/a")
            #expect(whole.status == 200)
            #expect(
                whole["Cache-Status"]?.hasPrefix("larder; fwd=partial; fwd-status=206") == true)
            #expect(whole.body == content.content)
            #expect(
                scene.askedRanges.dropFirst(3)
                    == ["bytes=2000000-3999999", "bytes=5000000-6999999"])
            #expect(
                scene.origin.requests.value.dropFirst(3).allSatisfy { $0["If-Range"] == "\"one\"" })
            try await scene.held("/a")
            let hit = try await scene.get("/a")
            #expect(hit.body == content.content)
            #expect(scene.origin.count == 5)
        }
    }

    @Test(
        "A range is read out of what is arriving, and one that is not is asked for once",
        arguments: tiers)
    func shared(_ tier: String) async throws {
        let content = RangedContent(200_000)
        let isOpen = Event(false)
        try await Scene.scripted(tier) { connection in
            while let request = try await connection.request() {
                let (head, bytes) = content.response(to: request)
                try await connection.send(head)
                try await connection.wire.send(Array(bytes.prefix(50_000)))
                try await isOpen.wait(for: "the barrier") { $0 }
                try await connection.wire.send(Array(bytes.dropFirst(50_000)))
            }
        } _: { scene in
            var asked: [(client: Wire, head: Message, bytes: Range<Int>)] = []
            func ask(_ path: String, _ range: String, _ bytes: Range<Int>) async throws {
                let client = try await scene.proxy.connect()
                try await client.send(scene.request("GET", path, ["Range: bytes=\(range)"]))
                let head = try await client.head()
                #expect(head.status == 206)
                asked.append((client, head, bytes))
            }
            let whole = try await scene.proxy.connect()
            try await whole.send(scene.request("GET", "/whole"))
            _ = try await whole.head()
            try await whole.count(to: 50_000)
            let there = try await scene.get("/whole", range: "10000-49999")
            #expect(there.body == Array(content.content[10_000..<50_000]))
            try await ask("/whole", "40000-149999", 40_000..<150_000)
            try await ask("/whole", "-1000", 199_000..<200_000)
            for _ in 0..<5 { try await ask("/range", "100000-199999", 100_000..<200_000) }
            isOpen.change { $0 = true }
            for (client, head, bytes) in asked {
                var answer = head
                try await client.content(of: &answer, to: "GET")
                #expect(answer.body == Array(content.content[bytes]))
            }
            #expect(scene.askedRanges == [nil, "bytes=100000-199999"])
        }
    }

    @Test("A representation that has changed is relayed instead of the gap", arguments: tiers)
    func changed(_ tier: String) async throws {
        try await Scene.ranged(RangedContent(100_000), tier) { scene, state in
            _ = try await scene.get("/a", range: "0-49999")
            try await scene.held("/a", range: "0-49999")
            var other = RangedContent(90_000, seed: 2)
            other.tag = "\"two\""
            state.change { $0 = other }
            let whole = try await scene.get("/a")
            #expect(whole.status == 200)
            #expect(whole["ETag"] == "\"two\"")
            #expect(whole.body == other.content)
            #expect(scene.askedRanges == ["bytes=0-49999", "bytes=50000-99999"])
            try await scene.held("/a")
            #expect(try await scene.get("/a", range: "0-9").body == Array(other.content[..<10]))
            #expect(scene.origin.count == 2)
        }
    }

    @Test(
        "One that changes between two gaps cuts the answer off; nothing is mixed", arguments: tiers)
    func changedLater(_ tier: String) async throws {
        let content = RangedContent(8 << 20)
        try await Scene.ranged(content, tier) { scene, state in
            for range in ["0-999", "4000000-7999999"] {
                _ = try await scene.get("/a", range: range)
                try await scene.held("/a", range: range)
            }
            let client = try await scene.proxy.connect(reads: false)
            try await client.send(scene.request("GET", "/a"))
            try await scene.origin.requests.wait(for: "the first gap") { $0.count == 3 }
            // While the client takes nothing the second gap is not asked for.
            var other = RangedContent(8 << 20, seed: 2)
            other.tag = "\"two\""
            state.change { $0 = other }
            try await client.resumeReading()
            let head = try await client.head()
            #expect(head["ETag"] == "\"one\"")
            #expect(head["Content-Length"] == "\(8 << 20)")
            let body = try await client.readAll()
            #expect(body == Array(content.content[..<8_000_000]))
            #expect(scene.askedRanges.last == "bytes=8000000-8388607")
        }
    }

    @Test("A body that breaks off is gone on with while its client reads", arguments: tiers)
    func resumed(_ tier: String) async throws {
        var content = RangedContent(4 << 20)
        content.cuts = [1_000_000, 500_000]
        try await Scene.ranged(content, tier) { scene, _ in
            let whole = try await scene.get("/a")
            #expect(whole.status == 200)
            #expect(whole.body == content.content)
            #expect(
                scene.askedRanges
                    == [nil, "bytes=1000000-4194303", "bytes=1500000-4194303"])
            try await scene.held("/a")
            #expect(try await scene.get("/a").body == content.content)
            #expect(scene.origin.count == 3)
        }
    }

    @Test(
        "What came of a body that broke off for good is kept for the next request", arguments: tiers
    )
    func kept(_ tier: String) async throws {
        var content = RangedContent(4 << 20)
        content.cuts = [1_000_000, 0, 0]
        try await Scene.ranged(content, tier) { scene, _ in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/a"))
            _ = try await client.head()
            let body = try await client.readAll()
            #expect(body == Array(content.content[..<1_000_000]))
            #expect(scene.origin.count == 3)
            try await scene.held("/a", range: "0-999999")
            let whole = try await scene.get("/a")
            #expect(whole.body == content.content)
            #expect(scene.askedRanges.last == "bytes=1000000-4194303")
            #expect(scene.origin.count == 4)
        }
    }

    @Test("Several ranges of a stored whole are multipart/byteranges", arguments: tiers)
    func multipart(_ tier: String) async throws {
        let content = RangedContent(3 << 20)
        try await Scene.ranged(content, tier) { scene, _ in
            _ = try await scene.get("/a")
            try await scene.held("/a")
            let asked = [2_000_000..<3_000_000, 0..<100, 500_000..<1_500_000]
            let text = asked.map { "\($0.lowerBound)-\($0.upperBound - 1)" }
                .joined(separator: ", ")
            let answer = try await scene.get("/a", range: text)
            #expect(answer.status == 206)
            #expect(answer["Content-Range"] == nil)
            #expect(answer["Content-Length"] == "\(answer.body.count)")
            let parts = try Multipart(answer)
            #expect(
                parts.ranges
                    == asked.map { "bytes \($0.lowerBound)-\($0.upperBound - 1)/\(3 << 20)" })
            #expect(parts.types == ["text/x-test", "text/x-test", "text/x-test"])
            #expect(parts.bodies == asked.map { Array(content.content[$0]) })
            // What costs more than it saves gets the whole.
            let many = (0..<20).map { "\($0 * 10)-\($0 * 10 + 1)" }.joined(separator: ",")
            #expect(try await scene.get("/a", range: many).status == 200)
            #expect(scene.origin.count == 1)
        }
    }
}

/// A `multipart/byteranges` body, taken apart as RFC 2046 §5.1.1 says.
private struct Multipart {
    var ranges: [String] = []
    var types: [String] = []
    var bodies: [[UInt8]] = []

    init(_ message: Message) throws {
        let type = message["Content-Type"] ?? ""
        let mark = "multipart/byteranges; boundary="
        guard type.hasPrefix(mark) else { throw TimedOut(description: type) }
        let delimiter = "\r\n--" + type.dropFirst(mark.count)
        var rest = Array("\r\n".utf8) + message.body
        guard let first = rest.end(of: Array(delimiter.utf8)), first == delimiter.utf8.count else {
            throw TimedOut(description: "no delimiter at the beginning")
        }
        rest.removeFirst(first)
        while let end = rest.end(of: Array(delimiter.utf8)) {
            let part = Array(rest[..<(end - delimiter.utf8.count)])
            rest.removeFirst(end)
            guard part.starts(with: Array("\r\n".utf8)),
                let body = part.end(of: Array("\r\n\r\n".utf8))
            else { throw TimedOut(description: "no head of a part") }
            let head = Message(head: "x" + String(decoding: part[..<body], as: UTF8.self))
            self.ranges.append(head["Content-Range"] ?? "")
            self.types.append(head["Content-Type"] ?? "")
            self.bodies.append(Array(part[body...]))
        }
        guard rest == Array("--\r\n".utf8) else { throw TimedOut(description: "no end") }
    }
}
