public import Foundation

/// Stored responses, in memory and on disk.
open class URLCache: NSObject, @unchecked Sendable {
    /// Where a response may be stored.
    public enum StoragePolicy: UInt, Sendable {
        case allowed = 0
        case allowedInMemoryOnly = 1
        case notAllowed = 2
    }

    open class var shared: URLCache {
        get { URLCache(memoryCapacity: 4 << 20, diskCapacity: 20 << 20, diskPath: nil) }
        set {}
    }

    public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        self.memoryCapacity = memoryCapacity
        self.diskCapacity = diskCapacity
        super.init()
    }

    open var memoryCapacity: Int
    open var diskCapacity: Int

    open func storeCachedResponse(
        _ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask
    ) {}

    open func getCachedResponse(
        for dataTask: URLSessionDataTask,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        completionHandler(nil)
    }
}

/// A response with its body, as a cache holds it.
open class CachedURLResponse: NSObject, @unchecked Sendable {
    public let response: URLResponse
    public let data: Data
    public let userInfo: [AnyHashable: Any]?
    public let storagePolicy: URLCache.StoragePolicy

    public init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil,
        storagePolicy: URLCache.StoragePolicy
    ) {
        self.response = response
        self.data = data
        self.userInfo = userInfo
        self.storagePolicy = storagePolicy
        super.init()
    }
}
