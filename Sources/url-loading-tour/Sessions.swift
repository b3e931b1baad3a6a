import Foundation
import URLLoading

/// Chapters 5, 10 and 11.
enum Sessions {
    static func kinds(_ stage: Stage) async throws {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = URLCache(
            memoryCapacity: 1 << 20, diskCapacity: 16 << 20,
            diskPath: stage.directory.appendingPathComponent("cache").path)
        configuration.httpCookieStorage = HTTPCookieStorage.sharedCookieStorage(
            forGroupContainerIdentifier: "tour-\(UUID().uuidString)")
        try await self.visit(stage, "default", configuration)
        try await self.visit(stage, "ephemeral", .ephemeral)
    }

    private static func visit(
        _ stage: Stage, _ name: String, _ configuration: URLSessionConfiguration
    ) async throws {
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }
        let before = await stage.origin.requests.count
        // The first answer sets a cookie, which the second request has; the third needs no origin.
        _ = try await session.data(from: stage.url("/cookie?\(name)"))
        let (page, _) = try await session.data(from: stage.url("/page?\(name)"))
        let (again, _) = try await session.data(from: stage.url("/page?\(name)"))
        let asked = await stage.origin.requests.count - before
        let cookie = await stage.origin.requests.last?.field("cookie") ?? "none"
        let cache = configuration.urlCache
        say(
            "\(name): cookie sent: \(cookie); three requests, \(asked) at the origin; memory "
                + "\(cache?.currentMemoryUsage ?? 0), disk \(cache?.currentDiskUsage ?? 0) bytes")
        try expect(page == again, "the cached page is another one")
        try expect(asked == 2, "the origin saw \(asked) requests")
        try expect(cookie == "visit=1", "the cookie was not sent")
        let isOnDisk = (cache?.currentDiskUsage ?? 0) > 0
        try expect(isOnDisk == (name == "default"), "the wrong one is on the disk")
    }

    static func connections(_ stage: Stage) async throws {
        let configuration = stage.configuration()
        configuration.httpMaximumConnectionsPerHost = 3
        configuration.urlCache = nil
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }
        let url = try stage.url("/brief")
        let before = await stage.origin.connectionCount
        let sizes = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<60 { group.addTask { try await session.data(from: url).0.count } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let opened = await stage.origin.connectionCount - before
        say("\(sizes.count) tasks over \(opened) connections")
        try expect(sizes.count == 60 && opened <= 3, "\(opened) connections were made")
    }

    static func invalidation(_ stage: Stage) async throws {
        weak var witness: Diary?
        let session = try await {
            let diary = Diary()
            witness = diary
            let session = URLSession(
                configuration: stage.configuration(), delegate: diary, delegateQueue: nil)
            session.dataTask(with: try stage.url("/page?bye")).resume()
            _ = await diary.ended()
            session.finishTasksAndInvalidate()
            await diary.dismissed()
            say("heard: \(diary.heard.lines)")
            return session
        }()
        // The queue may still hold it for the moment in which its last message returns.
        for _ in 0..<1_000 where witness != nil { await Task.yield() }
        try expect(session.delegate == nil && witness == nil, "the delegate is still there")
        say("the delegate is gone")
        do {
            _ = try await session.data(from: stage.url("/page"))
            throw Unexpected("the session still loads")
        } catch let error as URLError {
            say("a task made afterwards ends with \(error.code.rawValue)")
        }
    }
}
