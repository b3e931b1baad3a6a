import Foundation
import Glibc
import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("A body kept in memory")
struct BodiesMemoryTests {
    @Test(
        "is whole, whatever was announced",
        arguments: [
            ([], -1), ([5], -1), ([5], 5), ([5, 7], 12), ([70_000, 70_000, 1], -1),
            ([70_000, 70_000, 1], 140_001), ([100, 100], 1 << 50), ([100, 100], 3),
            ([9, 9], Int64.max),
        ] as [([Int], Int64)])
    func whole(counts: [Int], expected: Int64) async throws {
        let consumer = MemoryConsumer(expected: expected)
        let bytes = pattern(counts.reduce(0, +))
        var position = 0
        for count in counts {
            let error = await consumer.taking(Array(bytes[position..<position + count]))
            #expect(error == nil)
            position += count
        }
        #expect(await consumer.finishing() == nil)
        var data = consumer.takeData()
        #expect(data == Data(bytes))
        // It is the program's: it can be changed like any other.
        data.append(1)
        data.insert(2, at: 0)
        #expect(data.count == bytes.count + 2)
        #expect(consumer.takeData().isEmpty)
    }

    @Test("takes no more memory than it is long, however long")
    func peak() async throws {
        let consumer = MemoryConsumer(expected: -1)
        let piece = ByteBuffer(repeating: 7, count: 1 << 20)
        for _ in 0..<256 { consumer.take(piece) { #expect($0 == nil) } }
        let before = try residentBytes()
        let data = consumer.takeData()
        let after = try residentBytes()
        #expect(data.count == 256 << 20)
        #expect(data[200 << 20] == 7)
        // Other tests run beside this one; a second copy would be 256 MiB.
        #expect(after - before < 128 << 20)
    }

    private func residentBytes() throws -> Int {
        let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4096
    }
}

@Suite("A body written to a temporary file (§3.4)")
struct BodiesFileTests {
    @Test(
        "is whole, in a file of its own that only its owner reads",
        arguments: [
            [], [1], [100_000, 100_000], Array(repeating: 65_536, count: 100),
        ] as [[Int]])
    func whole(counts: [Int]) async throws {
        try await Scratch.with { scratch in
            let consumer = FileConsumer(in: scratch.url)
            let bytes = pattern(counts.reduce(0, +))
            var position = 0
            for count in counts {
                #expect(await consumer.taking(Array(bytes[position..<position + count])) == nil)
                position += count
            }
            #expect(await consumer.finishing() == nil)
            let location = try #require(consumer.location)
            #expect(try Data(contentsOf: location) == Data(bytes))
            #expect(consumer.total == Int64(bytes.count))
            let mode =
                try FileManager.default.attributesOfItem(atPath: location.path)[
                    .posixPermissions] as? NSNumber
            #expect(mode?.intValue == 0o600)
            #expect(location.lastPathComponent.hasPrefix("CFNetworkDownload_"))
            #expect(location.pathExtension == "tmp")
            #expect(DownloadFile.isPlausible(location.path))
            consumer.discard()
            #expect(try scratch.names.isEmpty)
        }
    }

    @Test("stays where it was moved to, and what took its name stays, too")
    func moved() async throws {
        try await Scratch.with { scratch in
            let consumer = FileConsumer(in: scratch.url)
            _ = await consumer.taking([1, 2, 3])
            #expect(await consumer.finishing() == nil)
            let location = try #require(consumer.location)
            let kept = scratch.url.appendingPathComponent("kept")
            try FileManager.default.moveItem(at: location, to: kept)
            try Data([9]).write(to: location)
            consumer.discard()
            #expect(try Data(contentsOf: kept) == Data([1, 2, 3]))
            #expect(try Data(contentsOf: location) == Data([9]))
        }
    }

    @Test("is deleted when nobody wants it, and stays when it was given away")
    func dropped() async throws {
        try await Scratch.with { scratch in
            var consumer: FileConsumer? = FileConsumer(in: scratch.url)
            _ = await consumer?.taking(pattern(1000))
            _ = await consumer?.finishing()
            consumer?.release()
            consumer = nil
            #expect(try scratch.names.count == 1)
            consumer = FileConsumer(in: scratch.url)
            _ = await consumer?.taking(pattern(1000))
            _ = await consumer?.finishing()
            #expect(try scratch.names.count == 2)
            consumer = nil
            try await self.queueEmptied()
            #expect(try scratch.names.count == 1)
        }
    }

    /// Waits until what stood on the file queue has been done.
    private func queueEmptied() async throws {
        await withCheckedContinuation { continuation in
            FileWork.queue.async(flags: .barrier) { continuation.resume() }
        }
    }

    @Test(
        "fails with the error of the disk: no directory, no room",
        arguments: [
            ("/nonexistent-directory", URLError.Code.cannotCreateFile, ENOENT),
            ("/proc", .cannotCreateFile, ENOENT),
        ] as [(String, URLError.Code, CInt)])
    func noDirectory(path: String, code: URLError.Code, number: CInt) async throws {
        let consumer = FileConsumer(in: URL(fileURLWithPath: path))
        _ = await consumer.taking([1])
        let error = await consumer.finishing()?.error as? URLError
        #expect(error?.code == code)
        let cause = error?.userInfo[NSUnderlyingErrorKey] as? POSIXError
        #expect(cause != nil)
        // Once failed, it stays so.
        #expect((await consumer.taking([1])?.error as? URLError)?.code == code)
    }

    @Test("makes whoever brings it wait for the disk, and never has more than its bound ahead")
    func backPressure() async throws {
        try await Scratch.with { scratch in
            let consumer = FileConsumer(in: scratch.url)
            let piece = pattern(FileConsumer.limit)
            // Each fills the bound: the next is wanted only when this one is written.
            for index in 1...8 {
                #expect(await consumer.taking(piece) == nil)
                #expect(consumer.total == Int64(index * FileConsumer.limit))
            }
            consumer.discard()
        }
    }

    /// What a consumer told of what it wrote: how much, the whole, and whom to answer.
    private struct Reports: Sendable {
        var calls: [(Int64, Int64, @Sendable () -> Void)] = []
        var isFinished = false
    }

    @Test("tells of what was written one call at a time, and all of it before the end")
    func progress() async throws {
        try await Scratch.with { scratch in
            let heard = Event(Reports())
            let consumer = FileConsumer(in: scratch.url) { written, total, taken in
                heard.change { $0.calls.append((written, total, taken)) }
            }
            for _ in 0..<20 { _ = await consumer.taking(pattern(200_000)) }
            consumer.finish { error in heard.change { $0.isFinished = error == nil } }
            // Nobody is called again before the answer; then the rest comes in few calls.
            for next in 0..<100 {
                try await heard.wait(for: "a call") { $0.calls.count > next || $0.isFinished }
                let now = heard.value
                guard now.calls.count > next else { break }
                #expect(now.calls.count == next + 1 && !now.isFinished)
                now.calls[next].2()
            }
            try await heard.wait(for: "the end") { $0.isFinished }
            #expect(heard.value.calls.reduce(0) { $0 + $1.0 } == 4_000_000)
            #expect(heard.value.calls.last?.1 == 4_000_000)
            consumer.discard()
        }
    }

    @Test("is left for later with what is in it, and gone on with from there")
    func left() async throws {
        try await Scratch.with { scratch in
            let bytes = pattern(600_000)
            var consumer: FileConsumer? = FileConsumer(in: scratch.url)
            _ = await consumer?.taking(Array(bytes[..<400_000]))
            consumer?.stop()
            let left = await consumer?.leaving()
            let part = try #require(left)
            consumer = nil
            #expect(part.length == 400_000)
            let file = try #require(DownloadFile.open(part))
            // While it is being written, nobody else gets it.
            #expect(DownloadFile.open(part) == nil)
            let second = FileConsumer(in: scratch.url, resuming: file, at: part.length)
            _ = await second.taking(Array(bytes[400_000...]))
            #expect(await second.finishing() == nil)
            let location = try #require(second.location)
            #expect(try Data(contentsOf: location) == Data(bytes))
            #expect(second.total == 600_000)
            second.discard()
            #expect(try scratch.names.isEmpty)
        }
    }

    @Test("is summed up as it is written, so that it need not be read when it is left")
    func summedUp() async throws {
        try await Scratch.with { scratch in
            let bytes = pattern(4_000_000)
            var part: DownloadPart?
            // Gone on with twice, from the midst of a block, and from its end.
            for end in [1_500_000, 2_621_440, 4_000_000] {
                let written = Event<Int64>(0)
                let begin = Int(part?.length ?? 0)
                let file = try part.map { try #require(DownloadFile.open($0)) }
                let consumer = FileConsumer(
                    in: scratch.url, resuming: file, at: Int64(begin), mayBeLeft: true
                ) { _, total, taken in
                    written.change { $0 = total }
                    taken()
                }
                _ = await consumer.taking(Array(bytes[begin..<end]))
                try await written.wait(for: "the file") { $0 == Int64(end) }
                part = await consumer.leaving()
                #expect(part?.length == Int64(end))
            }
            let whole = try #require(part)
            // Altered between the writing and the leaving, it is not taken for what was written.
            let file = try #require(DownloadFile.open(whole))
            let consumer = FileConsumer(
                in: scratch.url, resuming: file, at: whole.length, mayBeLeft: true)
            var altered = bytes
            altered[100] ^= 1
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: whole.path))
            try handle.write(contentsOf: Data(altered[..<200]))
            try handle.close()
            let left = try #require(await consumer.leaving())
            #expect(left == whole)
            #expect(DownloadFile.open(left) == nil)
        }
    }

    @Test("is not left behind its end, also where all of it is summed up", arguments: [0, 1])
    func leftBehindEnd(rest: Int) async throws {
        try await Scratch.with { scratch in
            let consumer = FileConsumer(in: scratch.url, mayBeLeft: true)
            // Eight blocks.
            let bytes = pattern((2 << 20) + rest)
            _ = await consumer.taking(bytes)
            #expect(await consumer.finishing() == nil)
            #expect(await consumer.leaving() == nil)
            let location = try #require(consumer.location)
            #expect(try Data(contentsOf: location) == Data(bytes))
            consumer.discard()
        }
    }

    @Test("is not gone on with where it is gone, short, altered, linked or no file of ours")
    func notResumable() async throws {
        try await Scratch.with { scratch in
            let consumer = FileConsumer(in: scratch.url)
            _ = await consumer.taking(pattern(300_000))
            let part = try #require(await consumer.leaving())
            let url = URL(fileURLWithPath: part.path)
            let original = try Data(contentsOf: url)
            var altered = original
            altered[150_000] ^= 1
            let link = scratch.url.appendingPathComponent("CFNetworkDownload_aaaaaa.tmp")

            try altered.write(to: url)
            #expect(DownloadFile.open(part) == nil)
            try original.prefix(299_999).write(to: url)
            #expect(DownloadFile.open(part) == nil)
            // What stands behind the part does not count.
            try (original + [1, 2, 3]).write(to: url)
            #expect(DownloadFile.open(part) != nil)
            #expect(try Data(contentsOf: url) == original)
            #expect(unsafe Glibc.link(part.path, link.path) == 0)
            #expect(DownloadFile.open(part) == nil)
            #expect(unsafe unlink(link.path) == 0)
            #expect(unsafe symlink(part.path, link.path) == 0)
            var other = part
            other.path = link.path
            #expect(DownloadFile.open(other) == nil)
            #expect(unsafe chmod(part.path, 0o666) == 0)
            #expect(DownloadFile.open(part) == nil)
            try FileManager.default.removeItem(at: url)
            #expect(DownloadFile.open(part) == nil)
            other.path = try scratch.file("precious.txt", Array(original)).path
            #expect(DownloadFile.open(other) == nil)
        }
    }

    @Test("that has nothing in it is not left")
    func nothingLeft() async throws {
        try await Scratch.with { scratch in
            let consumer = FileConsumer(in: scratch.url)
            #expect(await consumer.leaving() == nil)
            let names = try scratch.names
            #expect(names.isEmpty)
        }
    }
}

extension FileConsumer {
    func leaving() async -> DownloadPart? {
        await withCheckedContinuation { continuation in
            self.leave { continuation.resume(returning: $0) }
        }
    }
}

extension BodyConsumerError: Equatable {
    static func == (a: BodyConsumerError, b: BodyConsumerError) -> Bool {
        (a.error as? URLError)?.code == (b.error as? URLError)?.code
    }
}
