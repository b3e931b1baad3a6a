import Foundation
import Testing

@testable import URLLoading

/// A directory of a test's own, which goes with it.
final class CacheDirectory: Sendable {
    let path: String

    init() {
        self.path = NSTemporaryDirectory() + "url-cache-\(UUID().uuidString)"
    }

    deinit {
        try? FileManager.default.removeItem(atPath: self.path)
    }

    /// What lies directly in it; nil where it does not exist.
    var names: [String]? { try? FileManager.default.contentsOfDirectory(atPath: self.path) }

    func cache(memory: Int = 1 << 20, disk: Int = 8 << 20) -> URLCache {
        URLCache(memoryCapacity: memory, diskCapacity: disk, diskPath: self.path)
    }
}

func cacheURL(_ text: String) throws -> URL { try #require(URL(string: text)) }

func cacheRequest(
    _ text: String, method: String = "GET", fields: [String: String]? = nil
) throws -> URLRequest {
    var request = URLRequest(url: try cacheURL(text))
    request.httpMethod = method
    request.allHTTPHeaderFields = fields
    return request
}

func cachedText(
    _ text: String, for url: String, fields: [String: String] = [:],
    userInfo: [AnyHashable: Any]? = nil, policy: URLCache.StoragePolicy = .allowed
) throws -> CachedURLResponse {
    let response = try #require(
        HTTPURLResponse(
            url: try cacheURL(url), statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
    return CachedURLResponse(
        response: response, data: Data(text.utf8), userInfo: userInfo, storagePolicy: policy)
}

extension CachedURLResponse {
    var text: String { String(decoding: self.data, as: UTF8.self) }
}
