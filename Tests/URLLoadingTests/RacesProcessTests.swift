import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// What a process holds, as the kernel counts it.
private struct Holdings: Sendable, CustomStringConvertible {
    let threads: Int
    let descriptors: Int
    /// Resident, in bytes.
    let memory: Int

    static func now() throws -> Holdings {
        let files = FileManager.default
        let pages =
            try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
            .split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return Holdings(
            threads: try files.contentsOfDirectory(atPath: "/proc/self/task").count,
            descriptors: try files.contentsOfDirectory(atPath: "/proc/self/fd").count,
            memory: pages * 4096)
    }

    var description: String {
        "\(self.threads) threads, \(self.descriptors) descriptors, \(self.memory >> 20) MiB"
    }
}

/// What a test in a process of its own found wrong.
private struct Wrong: Error {
    init(_ what: String) {
        print(what)
    }
}

private func insist(_ holds: Bool, _ what: @autoclosure () -> String) throws {
    if !holds { throw Wrong(what()) }
}

/// Counts the connections that are open at an origin.
private struct CountingOrigin: Sendable {
    let origin: ScriptedOrigin
    let open: Event<Int>

    static func start() async throws -> CountingOrigin {
        let open = Event(0)
        let origin = try await ScriptedOrigin.start { connection in
            open.change { $0 += 1 }
            defer { open.change { $0 -= 1 } }
            while try await connection.request() != nil {
                try await connection.send(response(body: "content", cache: "no-store"))
            }
        }
        return CountingOrigin(origin: origin, open: open)
    }

    var url: URL { get throws { try URL.of(self.origin.url("/")) } }
}

@Suite("What a process holds on to (§1.2, §15, §16)")
struct RacesProcessTests {
    private static func settings() -> URLSessionConfiguration {
        let settings = URLSessionConfiguration.ephemeral
        settings.urlCache = nil
        settings.timeoutIntervalForRequest = 30
        return settings
    }

    /// So many tasks of one session, all at once.
    private static func tasks(_ count: Int, _ origin: CountingOrigin) async throws {
        let session = URLSession(configuration: Self.settings())
        let url = try origin.url
        try await withThrowingTaskGroup { group in
            for _ in 0..<count { group.addTask { try await session.data(from: url).0.count } }
            for try await length in group { try insist(length == 7, "a body of \(length)") }
        }
        session.finishTasksAndInvalidate()
    }

    /// So many sessions of a task each, dropped or invalidated, some in the midst of it.
    private static func sessions(_ count: Int, _ origin: CountingOrigin) async throws {
        let url = try origin.url
        let ends = Event(0)
        for start in stride(from: 0, to: count, by: 50) {
            for index in start..<min(count, start + 50) {
                let session = URLSession(configuration: Self.settings())
                // The last reference to it may go wherever the task completes.
                session.dataTask(with: url) { _, _, _ in ends.change { $0 += 1 } }.resume()
                if index % 3 == 0 { session.finishTasksAndInvalidate() }
                if index % 7 == 0 { session.invalidateAndCancel() }
            }
            try await ends.wait(for: "their ends") { $0 == min(count, start + 50) }
        }
    }

    @Test("is after a thousand tasks and a thousand sessions what it was before")
    func returns() async throws {
        await #expect(processExitsWith: .success) {
            let origin = try await CountingOrigin.start()
            // What is made once in a process.
            try await Self.tasks(200, origin)
            try await Self.sessions(200, origin)
            try await origin.open.wait(for: "all connections to be closed") { $0 == 0 }
            let before = try Holdings.now()
            try await Self.tasks(1000, origin)
            try await Self.sessions(1000, origin)
            try await origin.open.wait(for: "all connections to be closed") { $0 == 0 }
            let after = try Holdings.now()
            // Dispatch keeps a thread for a while for each queue that was busy at the same time: as
            // many as sessions ran at once, not as there were.
            try insist(after.threads <= before.threads + 64, "\(before), then \(after)")
            try insist(after.descriptors <= before.descriptors + 16, "\(before), then \(after)")
            try insist(after.memory <= before.memory + 48 << 20, "\(before), then \(after)")
        }
    }

    @Test("is no thread for a task that waits: for an answer of its delegate, for its turn")
    func waiting() async throws {
        await #expect(processExitsWith: .success) {
            let origin = try await CountingOrigin.start()
            try await Self.tasks(50, origin)
            let before = try Holdings.now()
            let settings = Self.settings()
            settings.httpMaximumConnectionsPerHost = 100
            let delegate = HoldingDelegate()
            let session = URLSession(
                configuration: settings, delegate: delegate, delegateQueue: nil)
            for _ in 0..<300 {
                let task = session.dataTask(with: try origin.url)
                task.resume()
            }
            _ = try await delegate.questions(100)
            let waiting = try Holdings.now()
            try insist(waiting.threads <= before.threads + 8, "\(before), then \(waiting)")
            session.invalidateAndCancel()
            try await delegate.messages.wait(for: "the end") { $0.last == "invalid" }
            try insist(delegate.errors.value.count == 300, "\(delegate.errors.value.count) ends")
            try await origin.open.wait(for: "all connections to be closed") { $0 == 0 }
        }
    }

    @Test("is the origin's business to keep, where a delegate does not take the body (§3.2)")
    func backPressure() async throws {
        let (origin, sent, over) = try await ScriptedOrigin.pouring()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let delegate = RecordingDelegate()
        delegate.disposition.withLock {
            $0 = { answer in
                answer(.allow)
                // The data waits behind this message from now on.
                queue.isSuspended = true
            }
        }
        let session = URLSession(
            configuration: Self.settings(), delegate: delegate, delegateQueue: queue)
        let task = session.dataTask(with: try .of(origin.url("/")))
        task.resume()
        try await delegate.messages.wait(for: "the response") { $0.contains("response") }
        // A second load takes its way while the first one stands still.
        let other = try await ScriptedOrigin.answering { _ in response(body: "other") }
        let free = URLSession(configuration: Self.settings())
        for _ in 0..<20 {
            let (data, _) = try await free.data(from: .of(other.url("/")))
            #expect(data == Data("other".utf8))
        }
        #expect(sent.value < 64)
        #expect(task.countOfBytesReceived < 4 << 20)
        queue.isSuspended = false
        session.invalidateAndCancel()
        try await over.wait(for: "the connection to be let go") { $0 }
        try await delegate.messages.wait(for: "the end") { $0.last == "invalid" }
        await origin.stop()
        await other.stop()
    }

    @Test("is nothing of a task, its session and its delegate behind their ends, over HTTP")
    func released() async throws {
        let origin = try await CountingOrigin.start()
        weak var task: URLSessionTask?
        weak var session: URLSession?
        weak var delegate: RecordingDelegate?
        let messages: Event<[String]>
        let queue: OperationQueue
        do {
            let recording = RecordingDelegate()
            let made = URLSession(
                configuration: Self.settings(), delegate: recording, delegateQueue: nil)
            let data = made.dataTask(with: try origin.url)
            (session, delegate, messages, queue, task) = (
                made, recording, recording.messages, made.delegateQueue, data
            )
            data.resume()
            made.finishTasksAndInvalidate()
        }
        try await messages.wait(for: "the end") { $0.last == "invalid" }
        // The engine lets go of its connections with the last load.
        try await origin.open.wait(for: "the connections to be closed") { $0 == 0 }
        await queue.settled()
        #expect(task == nil && session == nil && delegate == nil)
        await origin.origin.stop()
    }

    /// As a program does it whose home, caches and temporary files are all in one place.
    private static func ephemeral(in place: String) async throws {
        for name in ["HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMPDIR"] {
            try insist(unsafe setenv(name, place, 1) == 0, name)
        }
        let origin = try await ScriptedOrigin.answering { request in
            request["Authorization"] == nil
                ? response("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"")
                : response(
                    "200 OK", "Set-Cookie: a=1; Max-Age=600", body: "content", cache: "max-age=600")
        }
        let settings = URLSessionConfiguration.ephemeral
        let space = URLProtectionSpace(
            host: "127.0.0.1", port: origin.port, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        settings.urlCredentialStorage?.setDefaultCredential(
            URLCredential(user: "u", password: "p", persistence: .permanent), for: space)
        let session = URLSession(configuration: settings)
        for _ in 0..<3 {
            let (data, _) = try await session.data(from: .of(origin.url("/")))
            try insist(data == Data("content".utf8), "\(data.count) bytes")
        }
        try insist(settings.httpCookieStorage?.cookies?.count == 1, "no cookie")
        try insist(settings.urlCache?.currentMemoryUsage ?? 0 > 0, "nothing stored")
        try insist(origin.count == 2, "\(origin.count) requests")
        session.invalidateAndCancel()
        let left = try FileManager.default.subpathsOfDirectory(atPath: place)
        try insist(left.isEmpty, "left: \(left)")
    }

    @Test("is no file of an ephemeral session: no cache, cookie or credential (§2)")
    func ephemeral() async throws {
        try await Scratch.with { scratch in
            let path = scratch.url.path
            await #expect(processExitsWith: .success) { [path = path as String] in
                try await Self.ephemeral(in: path)
            }
        }
    }
}
