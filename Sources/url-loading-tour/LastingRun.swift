import Foundation
import URLLoading

/// The program's other second self: uses all that a session may keep, to be looked at from outside.
///
///     strace -f -e trace=file,desc url-loading-tour --ephemeral URL
enum LastingRun {
    static func kind(_ argument: String?) -> URLSessionConfiguration? {
        switch argument {
        case "--ephemeral": .ephemeral
        case "--default": .default
        default: nil
        }
    }

    static func main(_ configuration: URLSessionConfiguration, _ address: String) async -> Int32 {
        guard let url = URL(string: address), let host = url.host else { return 64 }
        configuration.connectionProxyDictionary = [:]
        let collector = MetricsCollector()
        let session = URLSession(
            configuration: configuration, delegate: collector, delegateQueue: nil)
        let space = URLProtectionSpace(
            host: host, port: url.port ?? 80, protocol: "http", realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
        do {
            for _ in 0..<2 { _ = try await session.data(from: url) }
            var request = URLRequest(url: url.appendingPathComponent("upload"))
            request.httpMethod = "POST"
            let source = collector.source
            _ = try await session.upload(for: request, from: Data("content".utf8))
            configuration.urlCredentialStorage?.setDefaultCredential(
                URLCredential(user: "user", password: "password", persistence: .permanent),
                for: space)
            await withCheckedContinuation { done in session.flush { done.resume() } }
            let cookies = configuration.httpCookieStorage?.cookies?.count ?? 0
            let credentials = configuration.urlCredentialStorage?.allCredentials.count ?? 0
            print("one from \(source), \(cookies) cookie, \(credentials) credential")
            await withCheckedContinuation { done in session.reset { done.resume() } }
            session.finishTasksAndInvalidate()
            await collector.dismissed()
            return 0
        } catch {
            print("\(error)")
            return 1
        }
    }
}
