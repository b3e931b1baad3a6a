import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderSession

@Suite("Content that may have to be sent twice")
struct RepeatableBodyTests {
    private static func isCancelled(_ step: BodyStep) -> Bool {
        if case .failed(.cancelled) = step { return true }
        return false
    }

    @Test("comes whole to the second reader, whatever the first one had of it", arguments: 0...4)
    func repeats(_ taken: Int) {
        let source = ScriptedBody("a", "b", "c")
        let body = RepeatableBody(source)
        let first = body.reader()
        first.attach {}
        for _ in 0..<taken { _ = first.next() }
        #expect(body.rewind())
        let second = body.reader()
        second.attach {}
        #expect(second.text().text == "abc")
        #expect(Self.isCancelled(first.next()))
        #expect(source.attached == 1)
        #expect(body.whole == Array("abc".utf8))
    }

    @Test("is kept up to a limit, beyond which it cannot be repeated")
    func limit() {
        let piece = ByteBuffer(repeating: 0x61, count: RepeatableBody.limit)
        let source = ScriptedBody([.piece(piece), .piece(ByteBuffer(string: "b"))])
        let body = RepeatableBody(source)
        let reader = body.reader()
        reader.attach {}
        _ = reader.next()
        #expect(body.isRepeatable)
        guard case .piece(let last) = reader.next() else {
            Issue.record("it could not be rewound")
            return
        }
        #expect(String(buffer: last) == "b")
        #expect(!body.isRepeatable)
        #expect(!body.rewind())
        source.give(.piece(ByteBuffer(string: "c")), .end(trailers: Fields()))
        #expect(reader.text().text == "c")
        #expect(body.whole == nil)
    }

    @Test("a reader's leaving ends the client's source only when nobody will come after it")
    func cancels() {
        let source = ScriptedBody("a")
        let body = RepeatableBody(source)
        let first = body.reader()
        first.attach {}
        first.cancel()
        #expect(!source.isCancelled)
        #expect(body.rewind())
        let second = body.reader()
        second.attach {}
        first.cancel()
        body.release()
        #expect(!source.isCancelled)
        second.cancel()
        #expect(source.isCancelled)
    }

    @Test("one that was read to its end is not cancelled behind it")
    func ended() {
        let source = ScriptedBody("a")
        let body = RepeatableBody(source)
        let reader = body.reader()
        reader.attach {}
        _ = reader.text()
        reader.cancel()
        body.cancel()
        #expect(!source.isCancelled)
    }

    @Test("whoever waits is woken, also one that came after the source said it had nothing")
    func wakes() {
        let source = ScriptedBody([.piece(ByteBuffer(string: "a"))])
        let body = RepeatableBody(source)
        let first = body.reader()
        first.attach {}
        #expect(first.text().text == "a")
        #expect(body.rewind())
        let woken = Mutex(0)
        let second = body.reader()
        second.attach { woken.withLock { $0 += 1 } }
        #expect(second.text().text == "a")
        // The source has said `pending` once and is not asked before it wakes.
        #expect(source.asked == 2)
        source.give(.piece(ByteBuffer(string: "b")), .end(trailers: Fields()))
        #expect(woken.withLock { $0 } == 1)
        #expect(second.text().text == "b")
    }

    @Test("what was kept goes as it is read, once it will not be sent again")
    func released() {
        let source = ScriptedBody("a", "b", "c")
        let body = RepeatableBody(source)
        let first = body.reader()
        first.attach {}
        _ = first.text()
        #expect(body.rewind())
        let second = body.reader()
        second.attach {}
        _ = second.next()
        body.release()
        #expect(second.text().text == "bc")
        #expect(!body.rewind())
        #expect(body.whole == nil)
    }

    @Test("two readers on two threads lose and repeat nothing", arguments: 0..<50)
    func races(_ seed: Int) async {
        let pieces = (0..<100).map { "\($0) " }
        let source = ScriptedBody(
            pieces.map { .piece(ByteBuffer(string: $0)) } + [.end(trailers: Fields())])
        let body = RepeatableBody(source)
        let first = body.reader()
        first.attach {}
        async let _ = first.text()
        for _ in 0..<seed { await Task.yield() }
        guard body.rewind() else {
            Issue.record("it could not be rewound")
            return
        }
        let second = body.reader()
        let (wakes, waker) = AsyncStream.makeStream(of: Void.self)
        second.attach { waker.yield() }
        var got = ""
        var iterator = wakes.makeAsyncIterator()
        while true {
            let (text, last) = second.text()
            got += text
            guard case .pending = last else { break }
            await iterator.next()
        }
        #expect(got == pieces.joined())
    }
}
