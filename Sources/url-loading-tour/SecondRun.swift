import Foundation
import URLLoading

/// Chapter 6: what one run of a program has stored answers the next one.
enum SecondRun {
    static let argument = "--second-run"

    static func play(_ stage: Stage) async throws {
        let path = stage.directory.appendingPathComponent("kept").path
        let url = try stage.url("/page?kept")
        let before = await stage.origin.requests.count
        for run in 1...2 {
            let output = try await self.start(url, path)
            let asked = await stage.origin.requests.count - before
            say("run \(run) of the program: \(output); \(asked) request at the origin")
            try expect(asked == 1, "the origin saw \(asked) requests")
        }
    }

    private static func start(_ url: URL, _ path: String) async throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = [self.argument, url.absoluteString, path]
        let pipe = Pipe()
        process.standardOutput = pipe
        let (ends, end) = AsyncStream<Int32>.makeStream()
        process.terminationHandler = { end.yield($0.terminationStatus) }
        try process.run()
        for await status in ends {
            try expect(status == 0, "the run ended with status \(status)")
            break
        }
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        return String(decoding: output, as: UTF8.self).trimmingCharacters(in: .newlines)
    }

    /// The program's second self: one request through a cache at a path.
    static func main(_ arguments: [String]) async -> Int32 {
        guard arguments.count == 4, let url = URL(string: arguments[2]) else { return 64 }
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = URLCache(
            memoryCapacity: 1 << 20, diskCapacity: 16 << 20, diskPath: arguments[3])
        configuration.httpCookieStorage = nil
        configuration.urlCredentialStorage = nil
        let collector = MetricsCollector()
        let session = URLSession(
            configuration: configuration, delegate: collector, delegateQueue: nil)
        do {
            let (data, _) = try await session.data(from: url)
            session.finishTasksAndInvalidate()
            await collector.dismissed()
            print("\(data.count) bytes from \(collector.source)")
            return 0
        } catch {
            print("\(error)")
            return 1
        }
    }
}

/// Notes where the last answer came from.
final class MetricsCollector: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    // Written on the delegate queue, read after the session's last message.
    private(set) var source = "nowhere"
    private let farewells: AsyncStream<Void>
    private let farewell: AsyncStream<Void>.Continuation

    override init() {
        (self.farewells, self.farewell) = AsyncStream.makeStream()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        switch metrics.transactionMetrics.last?.resourceFetchType {
        case .localCache: self.source = "the cache"
        case .networkLoad: self.source = "the network"
        default: self.source = "somewhere"
        }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        self.farewell.yield()
    }

    func dismissed() async {
        for await _ in self.farewells { return }
    }
}
