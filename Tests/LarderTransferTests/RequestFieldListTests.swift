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

    @Test("go out alike where libcurl takes several lines in an entry and where it does not")
    func wire() async throws {
        var heads: [Bool: [[String]]] = [:]
        for joins in [true, false] {
            let notes = Notes()
            let origin = try ScriptedOrigin { connection in
                while let head = connection.readHead() {
                    notes.add(head)
                    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                }
            }
            let fields: Fields = [
                "X-Empty": "", "Accept": "text/plain", "Via": "1.1 a", "Accept-Encoding": "br",
            ]
            // The second finds the handle as the first left it, the third has no profile.
            let requests: [(Method, Fields)] = [(.get, fields), (.get, [:]), (.delete, fields)]
            try await withUpstream({ $0.joinsFieldLines = joins }) { upstream in
                for (method, fields) in requests {
                    let record = await upstream.answer(to: origin.request(method, fields: fields))
                    #expect(record.head?.status == StatusCode(200))
                }
            }
            let port = ":\(origin.port)"
            heads[joins] = notes.all.map {
                $0.replacing(port, with: "").split(separator: "\r\n").map(String.init).sorted()
            }
        }
        #expect(heads[true]?.count == 3)
        #expect(heads[true] == heads[false])
        #expect(heads[true]?.first?.contains("X-Empty:") == true)
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
