import Foundation
import URLLoading

/// Chapter 4.
enum Uploads {
    static let content = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })

    static func kinds(_ stage: Stage) async throws {
        let diary = Diary()
        let session = URLSession(
            configuration: stage.configuration(), delegate: diary, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        var request = URLRequest(url: try stage.url("/upload"))
        request.httpMethod = "PUT"

        let file = stage.directory.appendingPathComponent("upload")
        try self.content.write(to: file)
        var streamed = request
        streamed.httpBodyStream = InputStream(data: self.content)
        let tasks: [(String, URLSessionTask)] = [
            ("data", session.uploadTask(with: request, from: self.content)),
            ("a file", session.uploadTask(with: request, fromFile: file)),
            ("a stream", session.dataTask(with: streamed)),
        ]
        for (source, task) in tasks {
            task.resume()
            if let error = await diary.ended() { throw error }
            guard let seen = await stage.origin.requests.last else {
                throw Unexpected("the origin saw nothing")
            }
            let framing =
                seen.field("content-length").map { "\($0) bytes announced" } ?? "in chunks"
            say("from \(source): \(framing), \(seen.contentLength) came, \(diary.heard.sent) sent")
            try expect(seen.contentLength == self.content.count, "bytes are missing")
        }
    }
}
