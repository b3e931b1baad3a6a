import Foundation
import LarderHTTP
@testable import LarderProcess
import Synchronization
import Testing
@testable import URLLoading

@Suite("Tasks of a session (§1.4, §1.6, §3.1)")
struct CoreTaskTests {
    @Test(
        "are found running by who has resumed them: only who awaits one may have its answer at once"
    )
    func answeredAtOnce() async throws {
        let url = try ScriptedSession.url()
        for (delegate, expected) in [(nil, true), (RecordingDelegate(), false)] {
            let said = Event<[Bool?]>([])
            let s = ScriptedSession(delegate: delegate) { load in
                said.change { $0.append(load.hears?.mayBeAnsweredAtOnce) }
                load.answer(200, [:], "one")
            }
            #expect(try await s.session.data(from: url).0 == Data("one".utf8))
            #expect(said.value == [expected])
            s.session.invalidateAndCancel()
        }
        let s = ScriptedSession(delegate: nil)
        let isOver = Event(false)
        s.session.dataTask(with: url) { _, _, _ in isOver.change { $0 = true } }.resume()
        let load = try await s.loaders.load()
        #expect(load.hears?.mayBeAnsweredAtOnce == false)
        load.answer(200, [:], "one")
        try await isOver.wait(for: "the handler") { $0 }
        s.session.invalidateAndCancel()
    }

    @Test("speak to the delegate in order, on its queue, and complete once (§1.6)")
    func order() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        #expect(task.state == .suspended)
        #expect(task.taskIdentifier == 1)
        task.resume()
        #expect(task.state == .running)
        let load = try await s.loaders.load()
        load.answer(200, ["A": "b"], "one", "two")
        try await s.delegate?.completion()
        #expect(
            s.delegate?.messages.value
                == ["created", "response", "data", "data", "metrics", "complete"])
        #expect(s.delegate?.data.value == Data("onetwo".utf8))
        #expect(s.delegate?.wrongQueue.value == 0)
        #expect(task.state == .completed)
        #expect(task.error == nil)
        #expect(task.countOfBytesReceived == 6)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
    }

    @Test("with a handler give data and response, or an error, on the delegate queue (§1.4)")
    func handler() async throws {
        let s = ScriptedSession()
        let results = Event<[(Data?, URLResponse?, (any Error)?, Bool)]>([])
        let queue = s.session.delegateQueue
        for _ in 0..<2 {
            s.session.dataTask(with: try ScriptedSession.url()) { data, response, error in
                let isThere = OperationQueue.current === queue
                results.change { $0.append((data, response, error, isThere)) }
            }.resume()
        }
        try await s.loaders.load(1).answer()
        try await results.wait(for: "the first") { $0.count == 1 }
        try await s.loaders.load(2).fail(.networkConnectionLost)
        try await results.wait(for: "the second") { $0.count == 2 }
        let (first, second) = (results.value[0], results.value[1])
        #expect(first.0 == Data() && first.1 != nil && first.2 == nil && first.3)
        #expect(second.0 == nil && second.1 == nil && second.3)
        let error = try #require(second.2 as? URLError)
        #expect(error.code == .networkConnectionLost)
        #expect(error.userInfo[NSURLErrorFailingURLErrorKey] as? URL == (try ScriptedSession.url()))
        // Nothing of the response, the body or the completion reaches the delegate.
        #expect(s.delegate?.messages.value.filter { $0 != "metrics" } == ["created", "created"])
    }

    @Test(
        "with a handler give it a response that has come, also where they fail behind it (§1.4)",
        arguments: ["data", "upload", "download"],
        [.networkConnectionLost, .timedOut, .cancelled] as [URLError.Code])
    func failedBehindResponse(kind: String, code: URLError.Code) async throws {
        let s = ScriptedSession()
        let results = Event<[(hasBody: Bool, URLResponse?, (any Error)?)]>([])
        var request = URLRequest(url: try ScriptedSession.url())
        let task: URLSessionTask
        switch kind {
        case "upload":
            request.httpMethod = "PUT"
            task = s.session.uploadTask(with: request, from: Data("x".utf8)) {
                data, answer, error in
                results.change { $0.append((data != nil, answer, error)) }
            }
        case "download":
            task = s.session.downloadTask(with: request) { location, answer, error in
                results.change { $0.append((location != nil, answer, error)) }
            }
        default:
            task = s.session.dataTask(with: request) { data, answer, error in
                results.change { $0.append((data != nil, answer, error)) }
            }
        }
        task.resume()
        let body = try await s.loaders.load().answer(200, ["X": "y"], "part", isWhole: false)
        try await body.pulls.wait(for: "the first piece") { $0 > 1 }
        switch code {
        case .timedOut:
            body.fail(.upstream(UpstreamFailure(.connectionReadTimeout, detail: "scripted")))
        case .cancelled: task.cancel()
        default: body.fail(.upstream(UpstreamFailure(.connectionTerminated, detail: "scripted")))
        }
        try await results.wait(for: "the end") { !$0.isEmpty }
        let (hasBody, response, error) = results.value[0]
        #expect((error as? URLError)?.code == code)
        #expect(!hasBody)
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X") == "y")
        #expect(response === task.response)
    }

    @Test("pull no more than the delegate has taken (§3.2, §4.3)")
    func backPressure() async throws {
        let s = ScriptedSession()
        let held = Event<[@Sendable (URLSession.ResponseDisposition) -> Void]>([])
        s.delegate?.disposition.withLock { $0 = { answer in held.change { $0.append(answer) } } }
        s.session.dataTask(with: try ScriptedSession.url()).resume()
        let body = try await s.loaders.load().answer(200, [:], "one", "two")
        try await held.wait(for: "the question") { $0.count == 1 }
        #expect(body.pulls.value == 0)
        held.value[0](.allow)
        // The second answer counts for nothing.
        held.value[0](.cancel)
        try await s.delegate?.completion()
        #expect(s.delegate?.data.value == Data("onetwo".utf8))
        #expect(s.delegate?.errors.value.first.flatMap { $0 } == nil)
    }

    @Test("are cancelled by the disposition, and get no body then (§4.3)")
    func dispositionCancel() async throws {
        let s = ScriptedSession()
        s.delegate?.disposition.withLock { $0 = { $0(.cancel) } }
        s.session.dataTask(with: try ScriptedSession.url()).resume()
        let body = try await s.loaders.load().answer(200, [:], "one")
        try await s.delegate?.completion()
        #expect((s.delegate?.errors.value[0] as? URLError)?.code == .cancelled)
        #expect(body.pulls.value == 0 && body.isCancelled.value)
        #expect(s.delegate?.messages.value == ["created", "response", "metrics", "complete"])
    }

    @Test("need as many resumes as they have suspensions, and one for their birth (§3.1)")
    func suspensions() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.suspend()
        task.resume()
        #expect(task.state == .suspended && s.loaders.loads.value.isEmpty)
        task.resume()
        #expect(task.state == .running && s.loaders.loads.value.count == 1)
        // More than there were suspensions count for nothing.
        task.resume()
        task.suspend()
        #expect(task.state == .suspended)
        // What comes of it meanwhile waits.
        let body = try await s.loaders.load().answer(200, [:], "one")
        #expect(s.delegate?.messages.value == ["created"] && body.pulls.value == 0)
        task.resume()
        try await s.delegate?.completion()
        #expect(s.delegate?.data.value == Data("one".utf8))
    }

    @Test("that stand still have no timeouts: they begin anew (§3.1)")
    func suspendedTimeout() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.resume()
        task.suspend()
        try await s.loaders.load().fail(.timedOut)
        #expect(task.state == .suspended && s.loaders.loads.value.count == 1)
        task.resume()
        try await s.loaders.load(2).answer(200, [:], "again")
        try await s.delegate?.completion()
        #expect(s.delegate?.data.value == Data("again".utf8))
    }

    @Test(
        "that cannot be loaded end with an error, under both keys and in words (§13)",
        arguments: [
            ("unknown://x/", URLError.Code.unsupportedURL, "unsupported URL"),
            ("relative", .unsupportedURL, "unsupported URL"),
        ])
    func unloadable(_ text: String, _ code: URLError.Code, _ words: String) async throws {
        let s = ScriptedSession()
        let url = try #require(URL(string: text))
        s.session.dataTask(with: url).resume()
        try await s.delegate?.completion()
        let error = try #require(s.delegate?.errors.value[0] as? URLError)
        #expect(error.code == code)
        #expect(error.userInfo[NSURLErrorFailingURLErrorKey] as? URL == url)
        #expect(error.userInfo["NSErrorFailingURLStringKey"] as? String == text)
        #expect(error.localizedDescription == words)
    }

    @Test("without a URL end with unsupportedURL (§13)")
    func noURL() async throws {
        let s = ScriptedSession()
        var request = URLRequest(url: try ScriptedSession.url())
        request.url = nil
        s.session.dataTask(with: request).resume()
        try await s.delegate?.completion()
        #expect((s.delegate?.errors.value[0] as? URLError)?.code == .unsupportedURL)
        #expect(s.loaders.loads.value.isEmpty)
    }

    @Test(
        "say what is wrong with a certificate, by Apple's codes (§13)",
        arguments: [
            (URLError.Code.secureConnectionFailed, -1200, "no secure connection could be made"),
            (.serverCertificateHasBadDate, -1201, "the server's certificate has expired"),
            (.serverCertificateUntrusted, -1202, "the server's certificate is not trusted"),
            (
                .serverCertificateHasUnknownRoot, -1203,
                "the server's certificate was issued by nobody known"
            ),
            (.serverCertificateNotYetValid, -1204, "the server's certificate is not valid yet"),
            (.clientCertificateRejected, -1205, "the client certificate was refused"),
            (.clientCertificateRequired, -1206, "the server asks for a client certificate"),
        ])
    func certificates(_ code: URLError.Code, _ number: Int, _ words: String) {
        let error = URLError.failing(code, url: nil)
        #expect(error.code.rawValue == number)
        #expect(error.localizedDescription == words)
    }

    @Test("with the content of a GET end with dataLengthExceedsMaximum (§3.3)")
    func getWithBody() async throws {
        let delegate = RecordingDelegate()
        let session = URLSession(
            configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        var request = URLRequest(url: try ScriptedSession.url())
        request.httpBody = Data("content".utf8)
        session.dataTask(with: request).resume()
        try await delegate.completion()
        let error = try #require(delegate.errors.value[0] as? URLError)
        #expect(error.code.rawValue == NSURLErrorDataLengthExceedsMaximum)
        #expect(error.localizedDescription == "resource exceeds maximum size")
        #expect(delegate.messages.value == ["created", "metrics", "complete"])
    }

    @Test(
        "complete with cancelled, also before they were resumed, and cannot be resumed then (§3.1)")
    func cancelled() async throws {
        let s = ScriptedSession()
        let task = s.session.dataTask(with: try ScriptedSession.url())
        task.cancel()
        #expect(task.state == .canceling || task.state == .completed)
        task.resume()
        task.cancel()
        try await s.delegate?.completion()
        #expect(task.state == .completed)
        #expect(s.loaders.loads.value.isEmpty)
        #expect((task.error as? URLError)?.code == .cancelled)
        #expect(task.error?.localizedDescription == "cancelled")
        #expect(s.delegate?.messages.value.filter { $0 == "complete" }.count == 1)
    }
}
