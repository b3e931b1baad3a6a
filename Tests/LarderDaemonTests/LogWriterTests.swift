import Foundation
import Glibc
import LarderConfig
import Synchronization
import Testing

@testable import LarderDaemon

/// Keeps what is written; blocks or fails when told to.
final class ScriptedSink: LogSink {
    struct State {
        var lines: [String] = []
        var writes = 0
        var reopened = 0
        var code: CInt = 0
    }

    final class Book: Sendable {
        let state = Mutex(State())
        let gate = DispatchSemaphore(value: 0)
        let entered = DispatchSemaphore(value: 0)
        let isGated: Bool

        init(isGated: Bool = false) { self.isGated = isGated }
    }

    let book: Book

    init(_ book: Book) { self.book = book }

    func write(_ lines: Span<UInt8>) -> LogFailure? {
        let text = lines.indices.map { Character(Unicode.Scalar(lines[$0])) }
        if self.book.isGated {
            self.book.entered.signal()
            self.book.gate.wait()
        }
        return self.book.state.withLock { state in
            if state.code == 0 {
                state.lines += text.split(separator: "\n").map { String($0) + "\n" }
                state.writes += 1
            }
            return state.code == 0 ? nil : LogFailure(code: state.code, rest: lines)
        }
    }

    func reopen() -> CInt {
        self.book.state.withLock {
            $0.reopened += 1
            return $0.code
        }
    }
}

@Suite("The log writer", .timeLimit(.minutes(10)))
struct LogWriterTests {
    private final class Notices: Sendable {
        let list = Mutex<[LogWriter.Notice]>([])
        func add(_ notice: LogWriter.Notice) { self.list.withLock { $0.append(notice) } }
        var all: [LogWriter.Notice] { self.list.withLock { $0 } }
    }

    private func flush(_ writer: LogWriter) async {
        await withCheckedContinuation { done in writer.flush { done.resume() } }
    }

    @Test("keeps the order, and closes with everything written")
    func order() async {
        let book = ScriptedSink.Book()
        let writer = LogWriter(sink: ScriptedSink(book)) { _ in }
        let expected = (0..<1000).map { "line \($0)\n" }
        for line in expected { writer.record(Array(line.utf8)) }
        await writer.close()
        #expect(book.state.withLock { $0.lines } == expected)
        #expect(writer.lost == 0)
    }

    @Test("gathers lines that come soon after others, and writes them in one piece")
    func gathering() async {
        let book = ScriptedSink.Book(isGated: true)
        let writer = LogWriter(sink: ScriptedSink(book)) { _ in }
        writer.record(Array("first\n".utf8))
        while book.entered.wait(timeout: .now() + 30) == .timedOut {}
        for number in 0..<100 { writer.record(Array("\(number)\n".utf8)) }
        book.gate.signal()
        book.gate.signal()
        // No flush: they come by themselves.
        while book.entered.wait(timeout: .now() + 30) == .timedOut {}
        await writer.close()
        #expect(book.state.withLock { $0.lines } == ["first\n"] + (0..<100).map { "\($0)\n" })
        #expect(book.state.withLock { $0.writes } == 2)
    }

    @Test("waits for no more where much has gathered")
    func batch() async {
        let book = ScriptedSink.Book(isGated: true)
        let writer = LogWriter(sink: ScriptedSink(book), gathering: .seconds(86_400)) { _ in }
        let line = [UInt8](repeating: 0x61, count: 1_023) + [0x0A]
        for count in [1, 64] {
            for _ in 0..<count { writer.record(line) }
            while book.entered.wait(timeout: .now() + 30) == .timedOut {}
            book.gate.signal()
        }
        writer.record(line)
        book.gate.signal()
        await writer.close()
        #expect(book.state.withLock { $0.lines.count } == 66)
        #expect(writer.lost == 0)
    }

    @Test("takes nothing after its end, and says so")
    func closed() async {
        let book = ScriptedSink.Book()
        let writer = LogWriter(sink: ScriptedSink(book)) { _ in }
        #expect(writer.record(Array("early\n".utf8)))
        await writer.close()
        #expect(!writer.record(Array("late\n".utf8)))
        #expect(book.state.withLock { $0.lines } == ["early\n"])
        #expect(writer.lost == 0)
    }

    @Test("drops what does not fit while the sink is slow, tells so at once, and how much later")
    func full() async {
        let book = ScriptedSink.Book(isGated: true)
        let notices = Notices()
        let writer = LogWriter(sink: ScriptedSink(book), capacity: 10) { notices.add($0) }
        writer.record(Array("first\n".utf8))
        // The writer is inside the sink now, and its queue is empty.
        while book.entered.wait(timeout: .now() + 30) == .timedOut {}
        writer.record(Array("12345678\n".utf8))
        writer.record(Array("too much\n".utf8))
        #expect(notices.all == [.losing])
        writer.record(Array("likewise\n".utf8))
        book.gate.signal()
        book.gate.signal()
        await writer.close()
        #expect(book.state.withLock { $0.lines } == ["first\n", "12345678\n"])
        #expect(writer.lost == 2)
        #expect(notices.all == [.losing, .lost(2)])
    }

    @Test("does not wait for ever for a sink that takes nothing, and says so")
    func stuck() async {
        let book = ScriptedSink.Book(isGated: true)
        let writer = LogWriter(sink: ScriptedSink(book)) { _ in }
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        writer.record(Array("line\n".utf8))
        writer.flush { end.yield() }
        #expect(await !writer.close(within: .zero))
        book.gate.signal()
        _ = await ends.first { true }
        #expect(book.state.withLock { $0.lines } == ["line\n"])
    }

    @Test("says once that the sink failed, and again after it worked")
    func failing() async {
        let book = ScriptedSink.Book()
        let notices = Notices()
        let writer = LogWriter(sink: ScriptedSink(book)) { notices.add($0) }
        for code in [ENOSPC, ENOSPC, 0, 0, EIO] {
            book.state.withLock { $0.code = code }
            writer.record([0x61, 0x0A])
            await self.flush(writer)
        }
        #expect(notices.all == [.failed(ENOSPC), .lost(2), .failed(EIO)])
        #expect(writer.lost == 3)
        await writer.close()
    }

    @Test("writes to a file, and to a new one after a rotation")
    func rotation() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-log-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.path + "/access.log"
        let writer = try #require(
            try LogWriter.open(.file(FilePath(path))) { Issue.record("\($0)") })
        writer.record(Array("one\n".utf8))
        await self.flush(writer)
        #expect(unsafe rename(path, path + ".1") == 0)
        writer.record(Array("two\n".utf8))
        writer.reopen()
        writer.record(Array("three\n".utf8))
        await writer.close()
        #expect(try String(contentsOfFile: path + ".1", encoding: .utf8) == "one\ntwo\n")
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "three\n")
        var status = stat()
        #expect(unsafe stat(path, &status) == 0)
        #expect(status.st_mode & 0o007 == 0)
    }

    @Test("counts the lines that are not whole, and begins the next one on a line of its own")
    func torn() throws {
        var ends: [CInt] = [-1, -1]
        let made = unsafe pipe(&ends)
        try #require(made == 0)
        for end in ends { #expect(fcntl(end, F_SETFL, O_NONBLOCK) == 0) }
        let sink = DescriptorSink(descriptor: ends[1], path: nil)
        defer { for end in ends { close(end) } }
        let read = {
            var bytes = [UInt8](repeating: 0, count: 4 << 20)
            let count = unsafe Glibc.read(ends[0], &bytes, bytes.count)
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        }
        let line = String(repeating: "x", count: 999) + "\n"
        let count = 3_000
        let many = Array(String(repeating: line, count: count).utf8)
        let result = sink.write(many.span)
        let failure = try #require(result)
        #expect(failure.code == EAGAIN)
        let lines = read().split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count > 1)
        // The last one is torn, or nothing.
        #expect(lines.dropLast().allSatisfy { $0.utf8.count == 999 })
        #expect(Int(failure.lost) == count - (lines.count - 1))
        let isTorn = lines.last != ""
        #expect(sink.write(Array("whole\n".utf8).span) == nil)
        #expect(sink.write(Array("again\n".utf8).span) == nil)
        #expect(read() == (isTorn ? "\n" : "") + "whole\nagain\n")
    }

    @Test("A file that cannot be opened is told with its path")
    func unopenable() {
        #expect(throws: LogError(path: "/nowhere/x", code: ENOENT)) {
            try LogWriter.open(.file(FilePath("/nowhere/x"))) { _ in }
        }
    }

    @Test("A pipe is not waited for where nobody reads it, and its reader is")
    func namedPipe() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-log-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.path + "/pipe"
        try #require(unsafe mkfifo(path, 0o600) == 0)
        #expect(throws: LogError(path: path, code: ENXIO)) {
            try LogWriter.open(.file(FilePath(path))) { _ in }
        }
        let reader = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        try #require(reader >= 0)
        defer { close(reader) }
        let writer = try #require(
            try LogWriter.open(.file(FilePath(path))) { Issue.record("\($0)") })
        // More than the pipe holds: written to the end once it is read.
        let line = Array((String(repeating: "x", count: 99_999) + "\n").utf8)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        writer.record(line)
        writer.flush { end.yield() }
        #expect(await !writer.close(within: .zero))
        #expect(fcntl(reader, F_SETFL, 0) == 0)
        var left = line.count
        var piece = [UInt8](repeating: 0, count: 65_536)
        while left > 0 {
            let count = unsafe read(reader, &piece, piece.count)
            try #require(count > 0)
            left -= count
        }
        _ = await ends.first { true }
    }

    @Test("The journal gets a datagram of fields a line")
    func journal() throws {
        let path = "/tmp/larder-journal-\(UUID().uuidString.prefix(8))"
        let receiver = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        defer {
            close(receiver)
            unsafe unlink(path)
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) {
            unsafe $0.copyBytes(from: Array(path.utf8))
        }
        let bound = unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(receiver, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        let sink = JournalSink(path: path)
        #expect(sink.write(Array("hello\nagain\n".utf8).span) == nil)
        for line in ["hello", "again"] {
            var bytes = [UInt8](repeating: 0, count: 256)
            let count = unsafe read(receiver, &bytes, bytes.count)
            #expect(
                String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
                    == "PRIORITY=6\nSYSLOG_IDENTIFIER=larder\nMESSAGE=\(line)\n")
        }
    }
    @Test("tells of a line that standard error takes in part only")
    func partly() throws {
        var ends: [CInt] = [-1, -1]
        try #require(unsafe pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        try #require(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0)
        let sink = JournalSink(path: "/nowhere", standIn: ends[1])
        #expect(sink.write(Array("short\n".utf8).span) == nil)
        // Longer than any pipe that was not made longer.
        let long = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20) + [UInt8(ascii: "\n")]
        #expect(sink.write(long.span) == LogFailure(code: EAGAIN, lost: 1))
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = unsafe read(ends[0], &bytes, 9)
        #expect(String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "<6>short\n")
    }
}
