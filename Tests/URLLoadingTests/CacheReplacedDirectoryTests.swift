import Foundation
import Testing
import URLLoading

/// Programs clear caches by removing the directory, too.
@Suite("A cache whose directory was replaced")
struct CacheReplacedDirectoryTests {
    private func fill(_ path: String) -> URLCache {
        let cache = URLCache(memoryCapacity: 0, diskCapacity: 8 << 20, diskPath: path)
        guard let url = URL(string: "https://a.example/") else { return cache }
        let response = URLResponse(
            url: url, mimeType: nil, expectedContentLength: 1, textEncodingName: nil)
        cache.storeCachedResponse(
            CachedURLResponse(response: response, data: Data([1])), for: URLRequest(url: url))
        return cache
    }

    private func replace(_ directory: URL) throws {
        try FileManager.default.removeItem(at: directory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    private func places(_ directory: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path)
    }

    @Test(
        "finds nothing, has its file again by then, and makes none behind the next one's back (§8)")
    func replaced() throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("url-cache-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let url = try #require(URL(string: "https://a.example/"))
        for _ in 0..<8 {
            do {
                let cache = self.fill(directory.path)
                #expect(cache.cachedResponse(for: URLRequest(url: url)) != nil)
                try self.replace(directory)
                #expect(cache.cachedResponse(for: URLRequest(url: url)) == nil)
                #expect(try self.places(directory) == ["responses"])
            }
            try self.replace(directory)
            let next = self.fill(directory.path)
            #expect(next.cachedResponse(for: URLRequest(url: url)) != nil)
            #expect(try self.places(directory) == ["responses"])
            try self.replace(directory)
        }
    }
}
