import NIOCore
import Testing

@testable import LarderHTTP

@Suite("Text written in one step")
struct WritingTests {
    @Test("numbers are written in decimal digits", arguments: [0, 9, 10, 304, 65_535, .max])
    func decimal(_ number: UInt64) {
        var buffer = ByteBuffer(string: "n=")
        buffer.write(atMost: 21) { out in
            out.append(decimal: number)
            out.append(text: ";")
        }
        #expect(String(buffer: buffer) == "n=\(number);")
    }

    @Test("a buffer that somebody else holds is left as it is")
    func shared() {
        var buffer = ByteBuffer(string: "a")
        let copy = buffer
        buffer.write(atMost: 100) { $0.append(contentsOf: Array("bc".utf8).span) }
        #expect(String(buffer: buffer) == "abc")
        #expect(String(buffer: copy) == "a")
    }

    @Test("Cache-Status tells a time that is over as a negative one")
    func staleness() {
        let status = CacheStatus(hit: true, ttl: -7, stored: true, detail: "a b")
        #expect(status.member(named: "c") == "c; hit; ttl=-7; stored; detail=\"a b\"")
        #expect(CacheStatus(ttl: .min).member(named: "c") == "c; ttl=\(Int64.min)")
    }

    @Test(
        "there is room for all that Cache-Status may say", arguments: CacheStatus.Forward.allCases)
    func all(_ forward: CacheStatus.Forward) {
        var status = CacheStatus(
            hit: true, forward: forward, forwardStatus: StatusCode(.max), ttl: .min, stored: true,
            collapsed: true, detail: "d")
        status.key = "k"
        #expect(
            status.member(named: "c")
                == "c; hit; fwd=\(forward.rawValue); fwd-status=65535; ttl=\(Int64.min)"
                + "; stored; collapsed; key=\"k\"; detail=d")
        var fields: Fields = ["A": "1"]
        status.append(to: &fields, named: "c")
        #expect(fields == ["A": "1", "Cache-Status": status.member(named: "c")])
    }
}
