import Foundation
import Synchronization
import URLLoading

/// Chapters 1 and 2.
enum Downloads {
    static func progress(_ stage: Stage) async throws {
        let destination = stage.directory.appendingPathComponent("download")
        let diary = Diary(.init(destination: destination))
        let session = URLSession(
            configuration: stage.configuration(), delegate: diary, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        session.downloadTask(with: try stage.url("/large")).resume()
        if let error = await diary.ended() { throw error }
        let heard = diary.heard
        let size = try FileManager.default.attributesOfItem(atPath: destination.path)[.size]
        say(
            "\(heard.written.count) reports of progress, the last one of \(heard.written.last ?? 0)"
        )
        say("the file has \(size ?? 0) bytes; the delegate heard: \(heard.lines)")
        try expect((size as? NSNumber)?.intValue == TourOrigin.largeSize, "the file is not whole")
        try expect(heard.lines == ["downloaded", "ended"], "another order: \(heard.lines)")
    }

    static func resuming(_ stage: Stage) async throws {
        let (offers, offer) = AsyncStream<Data?>.makeStream()
        let isCancelled = Atomic(false)
        let first = Diary(
            .init(downloading: { task, written in
                guard written >= 1 << 20,
                    !isCancelled.exchange(true, ordering: .acquiringAndReleasing)
                else { return }
                task.cancel(byProducingResumeData: { offer.yield($0) })
            }))
        let session = URLSession(
            configuration: stage.configuration(), delegate: first, delegateQueue: nil)
        session.downloadTask(with: try stage.url("/large?slowly")).resume()
        let error = await first.ended()
        try expect(
            (error as? URLError)?.code == .cancelled, "ended with \(String(describing: error))")
        var data: Data?
        for await offered in offers {
            data = offered
            break
        }
        session.finishTasksAndInvalidate()
        guard let data else { throw Unexpected("no resume data") }
        say(
            "cancelled after \(first.heard.written.last ?? 0) bytes; \(data.count) bytes of resume data"
        )
        try await self.resume(data, stage)
    }

    private static func resume(_ data: Data, _ stage: Stage) async throws {
        let destination = stage.directory.appendingPathComponent("resumed")
        let diary = Diary(.init(destination: destination))
        let session = URLSession(
            configuration: stage.configuration(), delegate: diary, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        session.downloadTask(withResumeData: data).resume()
        if let error = await diary.ended() { throw error }
        let range = await stage.origin.requests.last?.field("range") ?? "no range"
        say("resumed at \(diary.heard.resumedAt ?? -1), the origin was asked for \(range)")
        let contents = try Data(contentsOf: destination)
        try expect(contents == TourOrigin.large, "the file is another one")
        say("the file is the same byte for byte, \(contents.count) bytes")
    }
}
