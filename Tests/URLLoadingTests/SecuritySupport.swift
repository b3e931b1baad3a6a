import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

/// How a task of these tests ended.
struct Loaded {
    var data: Data?
    var response: URLResponse?
    var error: URLError?

    var status: Int? { (self.response as? HTTPURLResponse)?.statusCode }
    var text: String { String(decoding: self.data ?? Data(), as: UTF8.self) }
    var code: URLError.Code? { self.error?.code }
}

extension URLSession {
    /// One that is nobody's but the test's: no proxy of the environment, nothing on the disk.
    static func alone(
        _ delegate: (any URLSessionDelegate)? = nil,
        _ change: (URLSessionConfiguration) -> Void = { _ in }
    ) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        change(configuration)
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    func loaded(
        _ request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async -> Loaded {
        do {
            let (data, response) = try await self.data(for: request, delegate: delegate)
            return Loaded(data: data, response: response)
        } catch {
            return Loaded(error: error as? URLError ?? URLError(.unknown))
        }
    }

    func loaded(
        _ url: String, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> Loaded {
        await self.loaded(
            URLRequest(url: try #require(URL(string: url))), delegate: delegate)
    }
}

/// Everything that a value shows of itself.
func shown(_ value: Any) -> String {
    var text = ""
    dump(value, to: &text)
    return text + String(describing: value) + String(reflecting: value)
}

/// Keeps the challenges that come, and answers each as it is told.
class ChallengeDelegate: NSObject, @unchecked Sendable {
    typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)
    let challenges = Event<[URLAuthenticationChallenge]>([])
    private let answer: @Sendable (URLAuthenticationChallenge) -> Answer

    init(_ answer: @escaping @Sendable (URLAuthenticationChallenge) -> Answer) {
        self.answer = answer
    }

    func take(_ challenge: URLAuthenticationChallenge) -> Answer {
        self.challenges.change { $0.append(challenge) }
        return self.answer(challenge)
    }
}

/// Is asked what concerns the session.
final class SessionChallengeDelegate: ChallengeDelegate, URLSessionDelegate, @unchecked Sendable {
    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let (disposition, credential) = self.take(challenge)
        completionHandler(disposition, credential)
    }
}

/// Is asked what concerns a task.
final class TaskChallengeDelegate: ChallengeDelegate, URLSessionTaskDelegate, @unchecked Sendable {
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let (disposition, credential) = self.take(challenge)
        completionHandler(disposition, credential)
    }
}
