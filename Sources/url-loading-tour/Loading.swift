import Foundation
import URLLoading

/// Chapters 3, 7 and 8.
enum Loading {
    static func incremental(_ stage: Stage) async throws {
        let diary = Diary()
        let session = URLSession(
            configuration: stage.configuration(), delegate: diary, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        session.dataTask(with: try stage.url("/large")).resume()
        if let error = await diary.ended() { throw error }
        let heard = diary.heard
        say("\(heard.bytes) bytes in \(heard.pieces) pieces; heard: \(heard.lines)")
        try expect(heard.bytes == TourOrigin.largeSize, "bytes are missing")
        try expect(heard.pieces > 1, "it came in one piece")
    }

    static func challenge(_ stage: Stage) async throws {
        let diary = Diary(.init(credential: ("ada", "engine")))
        let session = URLSession(
            configuration: stage.configuration(), delegate: diary, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        for round in 1...2 {
            session.dataTask(with: try stage.url("/private")).resume()
            if let error = await diary.ended() { throw error }
            say("round \(round): \(diary.heard.lines.suffix(3))")
        }
        try expect(diary.heard.challenges == 1, "asked \(diary.heard.challenges) times")
        say("the second request bore the credential at once")
    }

    static func redirection(_ stage: Stage) async throws {
        let diary = Diary(.init(refusesRedirections: true))
        let session = URLSession(
            configuration: stage.configuration(), delegate: diary, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        session.dataTask(with: try stage.url("/moved")).resume()
        if let error = await diary.ended() { throw error }
        say("heard: \(diary.heard.lines)")
        try expect(
            diary.heard.lines.contains("response 302"), "the redirection is not the response")
    }
}
