import Foundation
import Testing
import URLLoading

/// Answers pings itself, as a program's own class may.
private final class AnsweringTask: URLSessionWebSocketTask, @unchecked Sendable {
    override init() { super.init() }
    override func sendPing() async throws {}
}

@Suite("The surface of the URL Loading System")
struct SurfaceTests {
    @Test("has Apple's raw values")
    func rawValues() {
        #expect(URLSession.ResponseDisposition.becomeDownload.rawValue == 2)
        #expect(URLSessionTask.State.canceling.rawValue == 2)
        #expect(NSURLRequest.CachePolicy.reloadRevalidatingCacheData.rawValue == 5)
    }

    @Test("names the versions of DTLS, which bound no session (§2)")
    func datagrams() {
        #expect(tls_protocol_version_t.DTLSv10.rawValue == 0xFEFF)
        #expect(tls_protocol_version_t(rawValue: 0xFEFD) == .DTLSv12)
    }

    @Test("takes senders of challenges that threads may share (§6.2)")
    func senders() {
        func isSendable(_ value: any Sendable) -> Bool { true }
        func shares(_ sender: any URLAuthenticationChallengeSender) -> Bool { isSendable(sender) }
        #expect(shares(RecordingSender()))
    }

    @Test("reports the progress of every task as Foundation's do (§3.1)")
    func progress() {
        func progress(of reporter: any ProgressReporting) -> Progress { reporter.progress }
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: URLRequest(url: URL(fileURLWithPath: "/")))
        #expect(progress(of: task) === task.progress)
    }

    @Test("says of an upload that is to be resumed by nothing of the kind that it cannot be (§1.4)")
    func resumedUpload() async {
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let failure: URLError? = await withCheckedContinuation { continuation in
            let task = session.uploadTask(withResumeData: Data("anything".utf8)) { data, _, error in
                continuation.resume(returning: data == nil ? error as? URLError : nil)
            }
            task.resume()
        }
        #expect(failure?.code == .unsupportedURL)
    }

    @Test("has a ping of a WebSocket to wait for, which throws where there is no connection (§3.7)")
    func ping() async {
        let session = URLSession(configuration: .ephemeral)
        defer { session.invalidateAndCancel() }
        let task = session.webSocketTask(with: URL(fileURLWithPath: "/"))
        task.resume()
        await #expect(throws: URLError.self) { try await task.sendPing() }
        let other: URLSessionWebSocketTask = AnsweringTask()
        await #expect(throws: Never.self) { try await other.sendPing() }
    }
}
