import NIOCore
import Testing

@testable import LarderProxy

@Suite("Head and content in one piece")
struct JoinedAnswerTests {
    @Test(
        "lie behind one another, as long as there is room for both",
        arguments: [(0, 0), (1, nil), (10, 22), (32, nil), (32, 0), (33, nil), (10, 23)])
    func room(head: Int, body: Int?) {
        let joined = JoinedAnswer(capacity: 32)
        // What lay there before is written over.
        for letter in ["a", "b"] {
            let start = String(repeating: letter, count: head)
            let rest = body.map { String(repeating: "-", count: $0) }
            let made = unsafe joined.withBytes(
                of: ByteBuffer(string: start), rest.map { ByteBuffer(string: $0) }
            ) { unsafe String(decoding: $0, as: UTF8.self) }
            let whole = start + (rest ?? "")
            #expect(made == (whole.utf8.count > 32 ? nil : whole))
        }
    }
}
