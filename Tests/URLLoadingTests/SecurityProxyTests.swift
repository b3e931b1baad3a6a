import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Proxies on the way to secure origins (§2.1, §6)", .timeLimit(.minutes(5)))
struct SecurityProxyTests {
    /// A proxy that wants a login for its tunnels, and then reaches nobody.
    private func proxy(_ scheme: String) async throws -> ScriptedOrigin {
        try await ScriptedOrigin.answering { request in
            request.has("Proxy-Authorization") && request["Proxy-Authorization"] != "own"
                ? response("502 Bad Gateway", cache: nil)
                : response(
                    "407 Proxy Authentication Required", "Proxy-Authenticate: \(scheme)",
                    body: "<html>a page of the proxy's</html>", cache: nil)
        }
    }

    @Test(
        "a tunnel's login goes into CONNECT alone, and nothing of the request does",
        arguments: ["Basic realm=\"p\"", "Digest realm=\"p\", nonce=\"n\", qop=\"auth\""])
    func tunnel(_ scheme: String) async throws {
        let proxy = try await self.proxy(scheme)
        let delegate = TaskChallengeDelegate { _ in
            (
                .useCredential,
                URLCredential(user: "user", password: "s3cr3t", persistence: .forSession)
            )
        }
        let session = URLSession.alone(delegate) {
            $0.connectionProxyDictionary = [
                "HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port,
            ]
        }
        var request = URLRequest(
            url: try #require(URL(string: "https://u:s3cr3t@origin.example/p?q")))
        request.allHTTPHeaderFields = [
            "Authorization": "s3cr3t", "Cookie": "s3cr3t", "X-Own": "s3cr3t",
        ]
        let loaded = await session.loaded(request)
        #expect(loaded.error != nil && !shown(loaded.error as Any).contains("s3cr3t"))
        let space = try #require(delegate.challenges.value.first).protectionSpace
        #expect(space.isProxy() && space.proxyType == NSURLProtectionSpaceHTTPSProxy)
        #expect(space.host == "127.0.0.1" && space.port == proxy.port && space.realm == "p")
        for head in proxy.requests.value {
            #expect(head.line == "CONNECT origin.example:443 HTTP/1.1")
            let others = head.fields.filter { !$0.hasPrefix("Proxy-Authorization:") }
            #expect(!others.joined().contains("s3cr3t"))
        }
        #expect(proxy.requests.value.first?.has("Proxy-Authorization") == false)
        #expect(proxy.requests.value.last?.has("Proxy-Authorization") == true)
        // It was not taken: nothing is kept.
        #expect(session.configuration.urlCredentialStorage?.allCredentials.isEmpty == true)
        session.invalidateAndCancel()
        await proxy.stop()
    }

    @Test("a WebSocket goes by the proxy of its scheme (§3.7)", arguments: ["ws", "wss"])
    func webSocket(_ scheme: String) async throws {
        let proxies = [
            try await self.proxy("Basic realm=\"p\""), try await self.proxy("Basic realm=\"p\""),
        ]
        let session = URLSession.alone {
            $0.connectionProxyDictionary = [
                "HTTPProxy": "127.0.0.1", "HTTPPort": proxies[0].port,
                "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxies[1].port,
            ]
        }
        let task = session.webSocketTask(
            with: try #require(URL(string: "\(scheme)://origin.example/")))
        task.resume()
        await #expect(throws: URLError.self) { try await task.receive() }
        let count = scheme == "ws" ? [1, 0] : [0, 1]
        #expect(proxies.map { $0.requests.value.isEmpty ? 0 : 1 } == count)
        session.invalidateAndCancel()
        for proxy in proxies { await proxy.stop() }
    }

    @Test("a proxy's page is no response of a secure origin's")
    func page() async throws {
        let proxy = try await self.proxy("Basic realm=\"p\"")
        let session = URLSession.alone {
            $0.connectionProxyDictionary = ["HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port]
        }
        let loaded = try await session.loaded("https://origin.example/")
        #expect(loaded.code == .userAuthenticationRequired && loaded.response == nil)
        session.invalidateAndCancel()
        await proxy.stop()
    }

    @Test("the program's own Proxy-Authorization goes to no origin, and exceptions use no proxy")
    func exceptions() async throws {
        let origin = try await ScriptedOrigin.answering { _ in response(body: "x", cache: nil) }
        let session = URLSession.alone {
            $0.connectionProxyDictionary = [
                "HTTPProxy": "127.0.0.1", "HTTPPort": 1, "HTTPUser": "u",
                "HTTPPassword": "s3cr3t", "ExceptionsList": ["127.0.0.1"],
            ]
        }
        var request = URLRequest(url: try #require(URL(string: origin.url("/"))))
        request.allHTTPHeaderFields = ["Proxy-Authorization": "own"]
        #expect(await session.loaded(request).text == "x")
        #expect(origin.requests.value.first?.has("Proxy-Authorization") == false)
        session.invalidateAndCancel()
        await origin.stop()
    }
}
