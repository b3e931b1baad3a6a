import LarderHTTP
import NIOCore
import SeededNumbers
import Testing

extension SplitMix64 {
    private static let fragments = [
        "\r", "\n", "\r\n", "\r\n\r\n", " ", "\t", ":", ",", ";", "\"", "%", "#", "@", "[", "]",
        "\u{0}", "0", "f", "chunked", "Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n",
        "Host: x\r\n", " HTTP/1.1\r\n", "ffffffffffffffff", "GET ", "\r\n ",
    ].map { Array($0.utf8) }

    /// Damages a message in a few places: bytes changed, removed, doubled, fragments put in.
    mutating func mutated(_ bytes: [UInt8]) -> [UInt8] {
        var out = bytes
        for _ in 0..<Int.random(in: 1...4, using: &self) where !out.isEmpty {
            let i = Int.random(in: out.indices, using: &self)
            switch Int.random(in: 0..<5, using: &self) {
            case 0: out[i] = UInt8.random(in: 0...255, using: &self)
            case 1: out.remove(at: i)
            case 2: out.insert(out[i], at: i)
            case 3: out.removeSubrange(i..<min(i + 8, out.count))
            default:
                let pick = Int.random(in: Self.fragments.indices, using: &self)
                out.insert(contentsOf: Self.fragments[pick], at: i)
            }
        }
        return out
    }

    /// Cuts bytes into pieces of random sizes.
    mutating func pieces(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var pieces: [ArraySlice<UInt8>] = []
        var start = 0
        while start < bytes.count {
            let end = min(start + Int.random(in: 1...24, using: &self), bytes.count)
            pieces.append(bytes[start..<end])
            start = end
        }
        return pieces
    }
}

@Suite("Damaged messages have one reading, however they arrive")
struct MutationTests {
    private static let rounds = 400
    private static let seeds: [UInt64] = [1, 2, 3, 4]

    @Test("requests", arguments: Self.seeds)
    func requests(_ seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var accepted = 0
        for round in 0..<Self.rounds {
            let sample = ValidRequest.all[round % ValidRequest.all.count]
            let bytes = generator.mutated(wire(sample.text + "GET / HTTP/1.1\nHost: b\n\n"))
            let whole = Reading.requests([bytes[...]])
            #expect(Reading.requests(generator.pieces(bytes)) == whole)
            for head in whole.messages {
                accepted += 1
                try self.rereads(head)
            }
        }
        #expect(accepted > Self.rounds / 8)  // Else the mutations are too wild to test much.
    }

    /// What was accepted means the same when it is written out and read again.
    private func rereads(_ head: RequestHead) throws {
        let target =
            switch head.target {
            case .absolute(let uri):
                uri.scheme.rawValue + "://"
                    + ((uri.userInfo ?? head.userInfo).map { $0 + "@" } ?? "")
                    + uri.authority + (uri.pathAndQuery == "*" ? "" : uri.pathAndQuery)
            case .origin(let path): path
            case .authority(let host, let port): "\(host):\(port)"
            case .asterisk: "*"
            }
        let line =
            "\(head.method) \(target) HTTP/\(head.version.major).\(head.version.minor)\r\n"
        let bytes = Array(line.utf8) + head.fields.serialized() + Array("\r\n".utf8)
        let again = Reading.requests([bytes[...]])
        #expect(again.messages == [head] && again.error == nil)
        for line in head.fields.lines {
            #expect(head.fields.name(of: line).allSatisfy(ASCII.isToken))
            #expect(head.fields.value(of: line).allSatisfy(ASCII.isFieldValue))
        }
        #expect(Fields(checking: head.fields.bytes, lines: head.fields.lines) != nil)
    }

    @Test("responses", arguments: Self.seeds)
    func responses(_ seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let sample = wire("HTTP/1.1 200 OK\nA: 1\nFolded: a\n b\n\tc\nContent-Length: 5\nE:\n\n")
        for _ in 0..<Self.rounds {
            let bytes = generator.mutated(sample + sample)
            for lenient in [false, true] {
                let whole = Reading.responses([bytes[...]], lenient: lenient)
                let split = Reading.responses(generator.pieces(bytes), lenient: lenient)
                #expect(split == whole)
                for head in whole.messages {
                    let reread = try trailerFields(head.fields.serialized())
                    #expect(reread == head.fields)
                }
            }
        }
    }

    @Test("chunked content", arguments: Self.seeds)
    func chunked(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let sample = wire("5\nhello\n10;a=\"b\"\n0123456789abcdef\n0;x\nA: b\nC: d\n\nGET")
        for _ in 0..<Self.rounds {
            let bytes = generator.mutated(sample)
            let whole = Decoding.of([bytes[...]])
            #expect(Decoding.of(generator.pieces(bytes)) == whole)
        }
    }

    @Test("field rules take anything", arguments: Self.seeds)
    func rules(_ seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let text = "1.1 a (b, \"c\\\"), close;q=0.123, text/html;q=1.0, \"x\\, y\", 100-continue"
        for _ in 0..<Self.rounds {
            let value = String(decoding: generator.mutated(Array(text.utf8)), as: UTF8.self)
            var fields: Fields = [
                "Via": value, "Connection": value, "Accept": value, "Expect": value,
                "Upgrade": value, "Max-Forwards": value,
            ]
            _ = Via.contains(pseudonym: "a", in: fields)
            _ = ProblemDocument.Format(acceptedBy: fields)
            _ = Expect(fields, version: .http11)
            _ = Upgrade.protocols(in: fields, version: .http11)
            _ = MaxForwards.judge(method: .trace, fields: fields)
            HopByHop.strip(&fields)
            #expect(fields.contains("Via") && !fields.contains("Connection"))
        }
    }
}
