import CCurl
import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("The field lines of a request, as libcurl gets them")
struct RequestFieldListTests {
    @Test("are an entry each, or joined to the one before")
    func entries() {
        let list = RequestFieldList()
        list.suppress("Host")
        var isSafe = [list.append("Host".utf8.span, "a.example".utf8.span)]
        isSafe.append(list.append("X-Empty".utf8.span, "".utf8.span, isJoined: true))
        isSafe.append(list.append("Range".utf8.span, "bytes=0-".utf8.span, isJoined: true))
        isSafe.append(list.append("Empty".utf8.span, "".utf8.span))
        isSafe.append(list.append("Via".utf8.span, "1.1 b".utf8.span))
        #expect(isSafe.allSatisfy { $0 })
        #expect(
            Self.entries(of: list) == [
                "Host:", "Host: a.example\r\nX-Empty:\r\nRange: bytes=0-", "Empty;", "Via: 1.1 b",
            ])
        list.removeAll()
        #expect(Self.entries(of: list).isEmpty)
        _ = list.append("First".utf8.span, "1".utf8.span, isJoined: true)
        #expect(Self.entries(of: list) == ["First: 1"])
    }

    @Test("are whole where their text grows", arguments: [true, false])
    func growth(isJoined: Bool) {
        let list = RequestFieldList()
        let lines = (0..<200).map { ("Name-\($0)", String(repeating: "v", count: $0)) }
        for (name, value) in lines.dropFirst() {
            _ = list.append(name.utf8.span, value.utf8.span, isJoined: isJoined)
        }
        let texts = lines.dropFirst().map { "\($0): \($1)" }
        #expect(Self.entries(of: list) == (isJoined ? [texts.joined(separator: "\r\n")] : texts))
    }

    @Test(
        "are refused where they would end early, or be another line",
        arguments: [
            ("", "a"), ("A b", "c"), ("A:", "b"), ("A;", "b"), ("A\r\nB", "c"), ("A", "b\r\nC: d"),
            ("A", "\n"), ("A", "b\0"), ("A", "a value of some length\rand more"),
        ])
    func refusals(name: String, value: String) {
        for isJoined in [true, false] {
            let list = RequestFieldList()
            _ = list.append("Host".utf8.span, "a".utf8.span)
            let isSafe = list.append(name.utf8.span, value.utf8.span, isJoined: isJoined)
            #expect(!isSafe)
        }
    }

    private static func entries(of list: RequestFieldList) -> [String] {
        var entries: [String] = []
        var next = unsafe list.link()
        while let node = unsafe next {
            unsafe entries.append(String(cString: node.pointee.data))
            unsafe next = node.pointee.next
        }
        return entries
    }
}
