import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("An answer that comes behind the end of its task (§1.6)")
struct CoreLateAnswerTests {
    /// An upload whose server is asked how much it has.
    private static func upload(_ session: URLSession, to url: URL) throws -> URLSessionUploadTask {
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        let resume = try #require(
            UploadResumeData(request, sending: .data(Data(pattern(10))), kept: url))
        return session.uploadTask(withResumeData: resume.encoded())
    }

    @Test("is let go of, and is no response of the task")
    func cancelled() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        _ = try await s.loaders.load()
        task.cancel()
        try await s.delegate?.completion()
        let body = ScriptedBody()
        let response = URLResponse(
            url: try ScriptedSession.url(), mimeType: nil, expectedContentLength: 3,
            textEncodingName: nil)
        task.respond(with: LoadAnswer(response: response, body: body))
        #expect(task.response == nil && task.countOfBytesExpectedToReceive == 0)
        #expect(task.guarded.withLock { $0.answer == nil })
        #expect(body.isCancelled.value)
    }

    @Test("is no response, either, where the task ended because of it")
    func refused() async throws {
        let s = ScriptedSession()
        let task = try Self.upload(s.session, to: ScriptedSession.url())
        task.resume()
        try await s.loaders.load().answer(204, ["Upload-Offset": "-1"])
        try await s.delegate?.completion()
        #expect((task.error as? URLError)?.code == .badServerResponse)
        #expect(task.response == nil)
    }

    @Test("does not keep the task")
    func released() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            "HTTP/1.1 204 No Content\r\nUpload-Offset: -1\r\n\r\n"
        }
        let delegate = RecordingDelegate()
        let session = URLSession.alone(delegate)
        weak var task: URLSessionTask?
        do {
            let made = try Self.upload(session, to: URL.of(origin.url("/kept")))
            task = made
            made.resume()
            try await delegate.completion()
            #expect((made.error as? URLError)?.code == .badServerResponse)
        }
        // Whoever has told the end may still be about to leave it.
        try await Released.wait { task == nil }
        session.invalidateAndCancel()
        await origin.stop()
    }
}
