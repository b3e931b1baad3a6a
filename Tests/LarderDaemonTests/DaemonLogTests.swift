import Dispatch
import LarderConfig
import Logging
import Synchronization
import Testing

@testable import LarderDaemon

/// A log that says nothing.
func quietLog() -> Logger { Logger(label: "quiet") { _ in SwiftLogNoOpLogHandler() } }

@Suite("The daemon's own log", .timeLimit(.minutes(10)))
struct DaemonLogTests {
    private static func await(_ event: DispatchSemaphore) { event.wait() }

    @Test("is written in order, at the level of the moment")
    func lines() async {
        let book = ScriptedSink.Book()
        let level = DaemonLog.Level(.warning)
        let log = DaemonLog(level, to: ScriptedSink(book))
        log.logger.notice("one")
        log.logger.warning("two", metadata: ["b": "2", "a": "1"])
        level.set(.debug)
        log.logger.debug("three")
        await log.close()
        let lines = book.state.withLock { $0.lines }
        #expect(lines.count == 2)
        let ends = [
            "warning larder: a=1 b=2 [LarderDaemonTests] two\n",
            "debug larder: [LarderDaemonTests] three\n",
        ]
        #expect(zip(lines, ends).allSatisfy { $0.hasSuffix($1) }, "\(lines)")
    }

    @Test("keeps nobody waiting for a sink that takes nothing, and counts what it loses")
    func stalled() async {
        let book = ScriptedSink.Book(isGated: true)
        let log = DaemonLog(DaemonLog.Level(.info), to: ScriptedSink(book), capacity: 1_000)
        log.logger.info("first")
        // It is being written, and stays so.
        Self.await(book.entered)
        for _ in 0..<100 { log.logger.info("\(String(repeating: "x", count: 100))") }
        for _ in 0..<100 { book.gate.signal() }
        await log.close()
        let lines = book.state.withLock { $0.lines }
        #expect(lines.first?.hasSuffix("first\n") == true)
        #expect(lines.count > 2 && lines.count < 20)
        #expect(lines.contains { $0.contains("messages lost") && $0.contains("lines=") })
    }
}
