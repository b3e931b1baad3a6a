import Foundation
import Testing
import URLLoading

/// What a program asks of whatever loads for it, which `URLSession` is.
private protocol DataLoading: Sendable {
    func data(for request: URLRequest) async throws -> (Data, URLResponse)
    func data(from url: URL) async throws -> (Data, URLResponse)
}

private protocol AllLoading: DataLoading {
    func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse)
    func upload(
        for request: URLRequest, fromFile fileURL: URL
    ) async throws -> (Data, URLResponse)
    func download(for request: URLRequest) async throws -> (URL, URLResponse)
    func download(from url: URL) async throws -> (URL, URLResponse)
    func download(resumeFrom resumeData: Data) async throws -> (URL, URLResponse)
    func bytes(for request: URLRequest) async throws -> (URLSession.AsyncBytes, URLResponse)
    func bytes(from url: URL) async throws -> (URLSession.AsyncBytes, URLResponse)
}

/// The same with a delegate.
private protocol DelegateLoading: Sendable {
    func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (Data, URLResponse)
}

extension URLSession: AllLoading, DelegateLoading {}

/// What programs wrote for a Foundation that lacked the methods: theirs comes first.
extension URLSession {
    fileprivate func upload(
        for request: URLRequest, from bodyData: Data
    ) async throws -> (Data, URLResponse) {
        (Data("theirs".utf8), URLResponse())
    }

    fileprivate func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        (URL(fileURLWithPath: "/theirs"), URLResponse())
    }
}

@Suite("Async methods in programs (§1.5)")
struct CompatibilityAsyncTests {
    private let url = URL(string: "data:text/plain,content")

    @Test("are those that a protocol of a program's asks for")
    func protocols() async throws {
        let url = try #require(self.url)
        let loading: any AllLoading = URLSession(configuration: .ephemeral)
        #expect(try await loading.data(for: URLRequest(url: url)).0 == Data("content".utf8))
        #expect(try await loading.data(from: url).0 == Data("content".utf8))
        var bytes: [UInt8] = []
        for try await byte in try await loading.bytes(from: url).0 { bytes.append(byte) }
        #expect(bytes == Array("content".utf8))
        let (file, _) = try await loading.download(for: URLRequest(url: url))
        #expect(try Data(contentsOf: file) == Data("content".utf8))
        try FileManager.default.removeItem(at: file)
    }

    @Test("are called with a delegate, without one and with none, and taken as values")
    func calls() async throws {
        let url = try #require(self.url)
        let session = URLSession(configuration: .ephemeral)
        let request = URLRequest(url: url)
        #expect(try await session.data(for: request).0.count == 7)
        #expect(try await session.data(from: url).0.count == 7)
        #expect(try await session.data(from: url, delegate: nil).0.count == 7)
        let load: (URL) async throws -> (Data, URLResponse) = session.data(from:)
        #expect(try await load(url).0.count == 7)
        await #expect(throws: URLError.self) { try await session.download(resumeFrom: Data()) }
    }

    @Test("give way to a program's own of the same name")
    func polyfills() async throws {
        let url = try #require(self.url)
        let session = URLSession(configuration: .ephemeral)
        let (data, _) = try await session.upload(for: URLRequest(url: url), from: Data())
        #expect(data == Data("theirs".utf8))
        #expect(try await session.download(from: url, delegate: nil).0.path == "/theirs")
    }
}
