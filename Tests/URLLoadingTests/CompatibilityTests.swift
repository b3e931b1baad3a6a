import Foundation
import Synchronization
import Testing
import URLLoading

/// A program's session: its own initializers, and a count of what is asked of it.
private final class CountingSession: URLSession, @unchecked Sendable {
    let asked = Mutex(0)

    override init(configuration: URLSessionConfiguration) {
        super.init(configuration: configuration)
    }

    override func dataTask(with url: URL) -> URLSessionDataTask {
        self.asked.withLock { $0 += 1 }
        return super.dataTask(with: url)
    }

    override func dataTask(with request: URLRequest) -> URLSessionDataTask {
        self.asked.withLock { $0 += 1 }
        return super.dataTask(with: request)
    }

    override func downloadTask(
        with url: URL,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.asked.withLock { $0 += 1 }
        return super.downloadTask(with: url, completionHandler: completionHandler)
    }

    override func downloadTask(
        with request: URLRequest,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.asked.withLock { $0 += 1 }
        return super.downloadTask(with: request, completionHandler: completionHandler)
    }
}

/// A configuration with a name of its own.
private final class NamedConfiguration: URLSessionConfiguration, @unchecked Sendable {
    override var identifier: String? {
        get { "named" }
        set {}
    }
}

/// A response that a test of a program's makes.
private final class TeapotResponse: HTTPURLResponse, @unchecked Sendable {
    override var statusCode: Int { 418 }
}

/// One with an initializer of its own that takes nothing, as it has none to override in Foundation.
private final class OwnResponse: URLResponse, @unchecked Sendable {
    init() {
        super.init(
            url: URL(fileURLWithPath: "/"), mimeType: "text/plain", expectedContentLength: 0,
            textEncodingName: nil)
    }

    required init?(coder: NSCoder) { nil }
}

@Suite("A subclass of a program's")
struct CompatibilitySubclassTests {
    @Test("hears of each task once: no method that makes one calls another that can be overridden")
    func overridden() throws {
        let session = CountingSession(configuration: .ephemeral)
        let url = try #require(URL(string: "http://host.test/"))
        _ = session.dataTask(with: url)
        #expect(session.asked.withLock { $0 } == 1)
        _ = session.downloadTask(with: url) { _, _, _ in }
        #expect(session.asked.withLock { $0 } == 2)
    }

    @Test("gives a response another status than the one it is made with (§7)")
    func status() throws {
        let url = try #require(URL(string: "http://host.test/"))
        let made = TeapotResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
        let response: HTTPURLResponse = try #require(made)
        #expect(response.statusCode == 418)
        #expect(response.description.contains("418"))
    }

    @Test("is made without anything, where a class of the library's can be")
    func empty() {
        #expect(URLResponse().url == nil && URLResponse().expectedContentLength == -1)
        #expect(URLResponse().suggestedFilename == "Unknown")
        #expect(HTTPURLResponse().url == nil && HTTPURLResponse().statusCode == 0)
        #expect(HTTPURLResponse().allHeaderFields.isEmpty)
        #expect(OwnResponse().mimeType == "text/plain")
        #expect(URLCache().memoryCapacity == 0 && URLCache().diskCapacity == 0)
    }

    @Test("pauses a task by its progress, once until it goes on (§3.1)")
    func pausing() throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [EndlessProtocol.self]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: try #require(URL(string: "http://host.test/")))
        #expect(task.progress.isPausable && !task.progress.isPaused)
        // What contains it may be paused before it begins.
        task.progress.pause()
        task.resume()
        #expect(task.state == .suspended)
        task.progress.resume()
        #expect(task.state == .running)
        let all = Progress(totalUnitCount: 1)
        all.addChild(task.progress, withPendingUnitCount: 1)
        all.pause()
        task.progress.pause()
        #expect(task.state == .suspended && task.progress.isPaused)
        all.resume()
        #expect(task.state == .running && !task.progress.isPaused)
    }

    @Test("takes back no suspension but its own when its progress goes on (§3.1)")
    func foreignSuspensions() throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [EndlessProtocol.self]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: try #require(URL(string: "http://host.test/")))
        task.progress.resume()
        #expect(task.state == .suspended)
        task.resume()
        task.suspend()
        task.progress.resume()
        #expect(task.state == .suspended)
        // Two suspensions, of which one is the progress's.
        task.progress.pause()
        task.resume()
        #expect(task.state == .suspended)
        task.progress.resume()
        #expect(task.state == .running && !task.progress.isPaused)
        // The program takes back what the progress has added, and has one of its own behind it.
        task.progress.pause()
        task.resume()
        #expect(task.state == .running)
        task.suspend()
        task.progress.resume()
        #expect(task.state == .suspended)
        task.resume()
        #expect(task.state == .running)
    }

    @Test("takes back one suspension where its progress goes on twice at a time (§3.1)")
    func foreignSuspensionsAtOnce() async throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [EndlessProtocol.self]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: try #require(URL(string: "http://host.test/")))
        task.resume()
        for _ in 0..<200 {
            task.progress.pause()
            task.suspend()
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<2 { group.addTask { task.progress.resume() } }
            }
            #expect(task.state == .suspended)
            task.resume()
            #expect(task.state == .running)
        }
    }

    @Test("a task reports its progress as Foundation's do")
    func progress() throws {
        let session = URLSession(configuration: .ephemeral)
        let task = session.dataTask(with: try #require(URL(string: "http://host.test/")))
        let reporting: any ProgressReporting = task
        #expect(reporting.progress === task.progress)
    }
}

/// Loads for ever.
private final class EndlessProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override func startLoading() {}
    override func stopLoading() {}
}

@Suite("The delegate queue that a session makes (§1.1)")
struct CompatibilityQueueTests {
    @Test("is serial, the one that handlers run on, and on a dispatch queue of its own")
    func own() async throws {
        let session = URLSession(configuration: .ephemeral)
        let other = URLSession(configuration: .ephemeral)
        #expect(session.delegateQueue.maxConcurrentOperationCount == 1)
        let below = unsafe try #require(session.delegateQueue.underlyingQueue)
        #expect(unsafe below !== other.delegateQueue.underlyingQueue)
        let isCurrent = await withCheckedContinuation { continuation in
            session.getAllTasks { [weak session] _ in
                continuation.resume(returning: OperationQueue.current === session?.delegateQueue)
            }
        }
        #expect(isCurrent)
    }
}
