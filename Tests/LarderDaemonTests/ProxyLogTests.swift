import Foundation
import Glibc
import LarderConfig
import LarderHTTP
import LarderProxy
import Synchronization
import Testing

@testable import LarderDaemon

@Suite("The log of the proxy's exchanges", .timeLimit(.minutes(10)))
struct ProxyLogTests {
    private struct Directory {
        let path: String

        /// Settings that name one of several files in it.
        func settings(_ index: Int) -> LogSettings {
            Self.settings(.file(FilePath("\(self.path)/\(index).log")))
        }

        static func settings(_ destination: LogDestination) -> LogSettings {
            var settings = Settings().log
            settings.accessDestination = destination
            return settings
        }
    }

    private final class Change: Sendable {
        let isDone = Atomic(false)
    }

    /// Runs `body` with a log that begins in file 0.
    ///
    /// - Returns: what the files hold after it.
    private static func run(
        _ body: (ProxyLog, Directory) async throws -> Void
    ) async throws -> [String] {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("larder-log-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let files = Directory(path: directory.path)
        let quiet = quietLog()
        let log = try ProxyLog(files.settings(0), name: "larder", log: quiet)
        try await body(log, files)
        await log.close()
        #expect(!log.isOn)
        return try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted().map {
            try String(contentsOfFile: "\(directory.path)/\($0)", encoding: .utf8)
        }
    }

    @Test(
        "A denial is one however it was found, and a tunnel that was not had is a tunnel",
        arguments: [
            ("CONNECT h:443", 502, CacheStatus(forward: .bypass), .connectionRefused, .tunnel),
            ("CONNECT h:443", 403, nil, .httpRequestDenied, .denied),
            ("CONNECT h:25", 508, nil, .proxyLoopDetected, .own),
            ("GET http://h/", 403, CacheStatus(forward: .uriMiss), .httpRequestDenied, .denied),
            ("GET http://h/", 403, CacheStatus(forward: .uriMiss), nil, .miss),
            ("GET http://h/", 101, CacheStatus(forward: .bypass), nil, .bypass),
            ("GET http://h/", 400, nil, .httpRequestError, .own),
            ("GET http://h/", nil, nil, nil, .unanswered),
        ] as [(String, UInt16?, CacheStatus?, ProxyErrorType?, AccessLogEntry.Outcome)])
    func outcome(
        _ line: String, _ status: UInt16?, _ cacheStatus: CacheStatus?, _ error: ProxyErrorType?,
        _ outcome: AccessLogEntry.Outcome
    ) throws {
        let head = try AccessLogDraftTests.request("\(line) HTTP/1.1\r\nHost: h\r\n\r\n")
        var entry = ExchangeEntry(
            exchange: 1, client: .unix(nil), request: head,
            status: status.flatMap { StatusCode($0) },
            began: Timestamp(seconds: 0))
        entry.cacheStatus = cacheStatus
        entry.errorType = error
        let told = AccessLogEntry(entry, name: "larder")
        #expect(told.outcome == outcome)
        #expect(told.errorType == error?.rawValue)
        let json = AccessLogFormatter(.json).line(told)
        #expect(
            String(decoding: json, as: UTF8.self).contains("\"errorType\"") == (error != nil))
    }

    @Test("loses nothing while it changes over to another file")
    func changing() async throws {
        let entry = try AccessLogDraftTests.pattern(from: .unix(nil)).entry
        var recorded = 0
        let files = try await Self.run { log, directory in
            let recorder = log.recorder()
            for round in 0..<100 {
                let (old, new) = (directory.settings(round % 2), directory.settings(1 - round % 2))
                let change = Change()
                let changing = Task {
                    try await log.change(from: old, to: new)
                    change.isDone.store(true, ordering: .relaxed)
                }
                // Together fewer than the writer's queue holds.
                for _ in 0..<100 where !change.isDone.load(ordering: .relaxed) {
                    recorder.record(entry)
                    recorded += 1
                }
                try await changing.value
            }
        }
        #expect(files.count == 2)
        #expect(files.map { $0.split(separator: "\n").count }.reduce(0, +) == recorded)
    }

    @Test("writes what comes before a change to the old file, and what comes after to the new one")
    func order() async throws {
        let entry = try AccessLogDraftTests.pattern(from: .unix(nil)).entry
        let files = try await Self.run { log, directory in
            let recorder = log.recorder()
            let none = Directory.settings(.none)
            let nowhere = Directory.settings(.file(FilePath("/nowhere/x")))
            let names = (0..<3).map { directory.settings($0) }
            recorder.record(entry)
            try await log.change(from: names[0], to: names[1])
            for _ in 0..<2 { recorder.record(entry) }
            try await log.change(from: names[1], to: none)
            #expect(!log.isOn)
            recorder.record(entry)
            try await log.change(from: none, to: names[2])
            #expect(log.isOn)
            for _ in 0..<3 { recorder.record(entry) }
            await #expect(throws: LogError.self) {
                try await log.change(from: names[2], to: nowhere)
            }
            recorder.record(entry)
        }
        #expect(files.map { $0.split(separator: "\n").count } == [1, 2, 4])
    }

    @Test("leaves a pipe that nobody reads behind")
    func stuck() async throws {
        let entry = try AccessLogDraftTests.pattern(from: .unix(nil)).entry
        let files = try await Self.run { log, directory in
            let pipe = "\(directory.path)/pipe"
            try #require(unsafe mkfifo(pipe, 0o600) == 0)
            let reader = unsafe open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            try #require(reader >= 0)
            // Its writer ends with it.
            defer { close(reader) }
            let recorder = log.recorder()
            let stuck = Directory.settings(.file(FilePath(pipe)))
            try await log.change(from: directory.settings(0), to: stuck)
            // More than a pipe holds, and more than is written at once.
            for _ in 0..<20_000 { recorder.record(entry) }
            try await log.change(from: stuck, to: directory.settings(1))
            recorder.record(entry)
            await log.close()
            try FileManager.default.removeItem(atPath: pipe)
        }
        #expect(files.map { $0.split(separator: "\n").count } == [0, 1])
    }
}
