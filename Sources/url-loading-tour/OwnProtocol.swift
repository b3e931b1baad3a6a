import Foundation
import URLLoading

/// Chapter 9: loads `tour:` URLs out of the air.
final class OwnProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool {
        request.url?.scheme == "tour"
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = self.request.url else {
            self.client?.urlProtocol(self, didFailWithError: URLError(.badURL))
            return
        }
        let data = Data("you asked for \(url.host ?? "nothing")".utf8)
        let response = URLResponse(
            url: url, mimeType: "text/plain", expectedContentLength: data.count,
            textEncodingName: "utf-8")
        self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        self.client?.urlProtocol(self, didLoad: data.prefix(4))
        self.client?.urlProtocol(self, didLoad: data.dropFirst(4))
        self.client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}

    static func play(_ stage: Stage) async throws {
        let configuration = stage.configuration()
        configuration.protocolClasses = [OwnProtocol.self]
        let session = URLSession(configuration: configuration)
        defer { session.finishTasksAndInvalidate() }
        guard let url = URL(string: "tour://nothing-special/") else {
            throw Unexpected("no URL")
        }
        let (data, response) = try await session.data(from: url)
        let text = String(decoding: data, as: UTF8.self)
        say("\(response.mimeType ?? "no type"): \(text)")
        try expect(text == "you asked for nothing-special", "the protocol was not asked")
    }
}
