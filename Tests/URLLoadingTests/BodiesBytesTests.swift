import Foundation
import LarderHTTP
import NIOCore
import SeededNumbers
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("A body as a sequence of bytes (§1.5)")
struct BodiesBytesTests {
    private func sequence(
        _ consumer: BytesConsumer, _ cancels: Event<Int> = Event(0)
    ) -> URLSession.AsyncBytes {
        URLSession.AsyncBytes(task: URLSessionDataTask(), consumer: consumer) {
            cancels.change { $0 += 1 }
            consumer.end(URLError(.cancelled))
        }
    }

    @Test("hands out each byte once, and then the end")
    func whole() async throws {
        let consumer = BytesConsumer()
        let bytes = pattern(200_000)
        async let feeding: Void = {
            for start in stride(from: 0, to: bytes.count, by: 7919) {
                _ = await consumer.taking(Array(bytes[start..<min(start + 7919, bytes.count)]))
            }
            _ = await consumer.finishing()
        }()
        var read: [UInt8] = []
        for try await byte in self.sequence(consumer) { read.append(byte) }
        await feeding
        #expect(read == bytes)
    }

    @Test("cancels nothing once all of it was read")
    func finished() async throws {
        let (consumer, cancels) = (BytesConsumer(), Event(0))
        _ = await consumer.taking([1, 2])
        _ = await consumer.finishing()
        var read: [UInt8] = []
        do {
            for try await byte in self.sequence(consumer, cancels) { read.append(byte) }
        }
        #expect(read == [1, 2] && cancels.value == 0)
        let open = BytesConsumer()
        do { _ = self.sequence(open, cancels) }
        #expect(cancels.value > 0)
    }

    @Test("makes the origin wait for a reader that does not come")
    func backPressure() async throws {
        let consumer = BytesConsumer()
        let sequence = self.sequence(consumer)
        let readies = Event(0)
        let piece = ByteBuffer(repeating: 1, count: 40_000)
        consumer.take(piece) { _ in readies.change { $0 += 1 } }
        #expect(readies.value == 1)
        consumer.take(piece) { _ in readies.change { $0 += 1 } }
        #expect(readies.value == 1)
        var iterator = sequence.makeAsyncIterator()
        #expect(try await iterator.next() == 1)
        #expect(readies.value == 2)
        consumer.end(nil)
    }

    @Test("throws what the task ended with, behind what came before")
    func failure() async throws {
        let consumer = BytesConsumer()
        _ = await consumer.taking([1, 2])
        consumer.stop()
        consumer.end(URLError(.networkConnectionLost))
        consumer.end(nil)
        var iterator = self.sequence(consumer).makeAsyncIterator()
        #expect(try await iterator.next() == 1)
        #expect(try await iterator.next() == 2)
        let error = await #expect(throws: URLError.self) { _ = try await iterator.next() }
        #expect(error?.code == .networkConnectionLost)
    }

    @Test("throws once, and is over then, for every copy (AsyncIteratorProtocol, End of Iteration)")
    func thrownOnce() async throws {
        let consumer = BytesConsumer()
        let sequence = self.sequence(consumer)
        _ = await consumer.taking([1])
        consumer.end(URLError(.networkConnectionLost))
        var iterator = sequence.makeAsyncIterator()
        #expect(try await iterator.next() == 1)
        var copy = iterator
        await #expect(throws: URLError.self) { _ = try await iterator.next() }
        for _ in 0..<2 { #expect(try await iterator.next() == nil) }
        #expect(try await copy.next() == nil)
        var other = sequence.makeAsyncIterator()
        #expect(try await other.next() == nil)
    }

    @Test("throws to everybody who waits for the next byte when it fails")
    @MainActor
    func thrownToAll() async throws {
        let asked = Event(0)
        let consumer = BytesConsumer()
        let sequence = self.sequence(consumer)
        let tasks = (0..<2).map { _ in
            // On the actor of this test, which so goes on when both wait.
            Task { @MainActor in
                var iterator = sequence.makeAsyncIterator()
                asked.change { $0 += 1 }
                return try await iterator.next()
            }
        }
        try await asked.wait(for: "two readers") { $0 == 2 }
        consumer.end(URLError(.networkConnectionLost))
        for task in tasks { await #expect(throws: URLError.self) { _ = try await task.value } }
        var iterator = sequence.makeAsyncIterator()
        #expect(try await iterator.next() == nil)
    }

    @Test("of lines, characters or scalars gives nothing behind an error")
    func textBehindFailure() async throws {
        func failing(_ text: String) async -> URLSession.AsyncBytes {
            let consumer = BytesConsumer()
            _ = await consumer.taking(Array(text.utf8))
            consumer.end(URLError(.networkConnectionLost))
            return self.sequence(consumer)
        }
        var lines = await failing("ab\ncd").lines.makeAsyncIterator()
        #expect(try await lines.next() == "ab")
        await #expect(throws: URLError.self) { _ = try await lines.next() }
        for _ in 0..<2 { #expect(try await lines.next() == nil) }
        var characters = await failing("abc").characters.makeAsyncIterator()
        #expect(try await characters.next() == "a")
        #expect(try await characters.next() == "b")
        await #expect(throws: URLError.self) { _ = try await characters.next() }
        for _ in 0..<2 { #expect(try await characters.next() == nil) }
        let cut = BytesConsumer()
        _ = await cut.taking([0x61, 0xC3])
        cut.end(URLError(.networkConnectionLost))
        var scalars = self.sequence(cut).unicodeScalars.makeAsyncIterator()
        #expect(try await scalars.next() == "a")
        await #expect(throws: URLError.self) { _ = try await scalars.next() }
        for _ in 0..<2 { #expect(try await scalars.next() == nil) }
    }

    @Test("cancels the transfer when its iterator goes, or the sequence without one")
    func dropped() async throws {
        let cancels = Event(0)
        do {
            let sequence = self.sequence(BytesConsumer(), cancels)
            _ = sequence.task
        }
        #expect(cancels.value == 1)
        let consumer = BytesConsumer()
        let sequence = self.sequence(consumer, cancels)
        _ = await consumer.taking([1, 2, 3])
        for try await byte in sequence where byte == 2 { break }
        #expect(cancels.value >= 2)
        withExtendedLifetime(sequence) {}
    }

    @Test("ends with URLError.cancelled when the Swift task is cancelled, waiting or not")
    func cancelledTask() async throws {
        for hasBytes in [false, true] {
            let consumer = BytesConsumer()
            if hasBytes { _ = await consumer.taking([1]) }
            let cancels = Event(0)
            let sequence = self.sequence(consumer, cancels)
            let task = Task {
                var iterator = sequence.makeAsyncIterator()
                var thrown: (any Error)?
                do {
                    while try await iterator.next() != nil {}
                } catch {
                    thrown = error
                }
                let behind = [try await iterator.next(), try await iterator.next()]
                #expect(behind == [nil, nil])
                return (thrown as? URLError)?.code
            }
            task.cancel()
            #expect(try await task.value == .cancelled)
            #expect(cancels.value > 0)
        }
    }

    @Test("stays at its end when the Swift task is cancelled behind that")
    func cancelledBehindEnd() async throws {
        let consumer = BytesConsumer()
        _ = await consumer.finishing()
        let sequence = self.sequence(consumer)
        let task = Task {
            var iterator = sequence.makeAsyncIterator()
            #expect(try await iterator.next() == nil)
            unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
            return try await iterator.next()
        }
        #expect(try await task.value == nil)
    }

    @Test(
        "is one of lines, without ends and empty ones",
        arguments: [
            ("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\nb", ["a", "b"]),
            ("a\r\nb\r\n", ["a", "b"]),
            ("a\rb", ["a", "b"]), ("\n\n\na\n\n", ["a"]), ("a\r\n\r\nb", ["a", "b"]),
            ("a\u{B}b\u{C}c", ["a", "b", "c"]), ("a\u{85}b", ["a", "b"]),
            ("ä\u{2028}ö\u{2029}ü", ["ä", "ö", "ü"]), ("a\u{2027}b", ["a\u{2027}b"]),
            ("\u{105}\u{A8}", ["\u{105}\u{A8}"]),
        ] as [(String, [String])])
    func lines(text: String, expected: [String]) async throws {
        let consumer = BytesConsumer()
        if !text.isEmpty { _ = await consumer.taking(Array(text.utf8)) }
        consumer.end(nil)
        var lines: [String] = []
        for try await line in self.sequence(consumer).lines { lines.append(line) }
        #expect(lines == expected)
    }

    @Test(
        "is one of characters and scalars, as String decodes them",
        arguments: [
            "", "abc", "e\u{301}x", "👩‍👩‍👧‍👦🇩🇪🇫🇷", "a\r\nb", "한글", "\u{301}",
        ])
    func characters(text: String) async throws {
        for isScalars in [false, true] {
            let consumer = BytesConsumer()
            if !text.isEmpty { _ = await consumer.taking(Array(text.utf8)) }
            consumer.end(nil)
            let bytes = self.sequence(consumer)
            if isScalars {
                var scalars: [Unicode.Scalar] = []
                for try await scalar in bytes.unicodeScalars { scalars.append(scalar) }
                #expect(scalars == Array(text.unicodeScalars))
            } else {
                var characters: [Character] = []
                for try await character in bytes.characters { characters.append(character) }
                #expect(characters == Array(text))
            }
        }
    }

    @Test("of broken UTF-8 decodes as String does", arguments: 0..<200 as Range<UInt64>)
    func broken(seed: UInt64) {
        var numbers = SplitMix64(seed: seed)
        let alphabet: [UInt8] = [
            0x41, 0x80, 0xBF, 0xC0, 0xC2, 0xC3, 0xE0, 0xA0, 0x9F, 0xE2, 0x82, 0xAC, 0xED, 0xEF,
            0xF0, 0x90, 0x8F, 0xF4, 0xF5, 0xFF, 0x0A,
        ]
        let bytes = (0..<40).map { _ in
            alphabet.randomElement(using: &numbers) ?? 0
        }
        var assembler = ScalarAssembler()
        var scalars: [Unicode.Scalar] = []
        for byte in bytes {
            assembler.push(byte)
            while let scalar = assembler.next() { scalars.append(scalar) }
        }
        assembler.finish()
        while let scalar = assembler.next() { scalars.append(scalar) }
        #expect(scalars == Array(String(decoding: bytes, as: UTF8.self).unicodeScalars))
    }
}
