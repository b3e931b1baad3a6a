public import Foundation

// The async methods without a delegate. A default value would do for calls, but a method that has it is
// not the one that a program's protocol asks of `URLSession`.

extension URLSession {
    /// Loads a request into memory; see `data(for:delegate:)`.
    public func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        try await self.data(for: request, delegate: nil)
    }

    /// Loads a URL into memory; see `data(for:delegate:)`.
    public func data(from url: URL) async throws -> (Data, URLResponse) {
        try await self.data(for: URLRequest(url: url), delegate: nil)
    }

    /// Sends data, and loads the response into memory; see `upload(for:from:delegate:)`.
    public func upload(
        for request: URLRequest, from bodyData: Data
    ) async throws -> (Data, URLResponse) {
        try await self.upload(for: request, from: bodyData, delegate: nil)
    }

    /// Sends a file, and loads the response into memory; see `upload(for:fromFile:delegate:)`.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL
    ) async throws -> (Data, URLResponse) {
        try await self.upload(for: request, fromFile: fileURL, delegate: nil)
    }

    /// Writes the response's body to a temporary file; see `download(for:delegate:)`.
    public func download(for request: URLRequest) async throws -> (URL, URLResponse) {
        try await self.download(for: request, delegate: nil)
    }

    /// Writes the response's body to a temporary file; see `download(for:delegate:)`.
    public func download(from url: URL) async throws -> (URL, URLResponse) {
        try await self.download(from: url, delegate: nil)
    }

    /// Goes on where an earlier download was broken off; see `download(resumeFrom:delegate:)`.
    public func download(resumeFrom resumeData: Data) async throws -> (URL, URLResponse) {
        try await self.download(resumeFrom: resumeData, delegate: nil)
    }

    /// Loads a request, and gives its body byte by byte as it comes; see `bytes(for:delegate:)`.
    public func bytes(for request: URLRequest) async throws -> (AsyncBytes, URLResponse) {
        try await self.bytes(for: request, delegate: nil)
    }

    /// Loads a URL, and gives its body byte by byte as it comes; see `bytes(for:delegate:)`.
    public func bytes(from url: URL) async throws -> (AsyncBytes, URLResponse) {
        try await self.bytes(from: url, delegate: nil)
    }
}
