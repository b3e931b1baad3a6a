public import Foundation
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderStore
import Synchronization

/// Stored responses to requests, in memory and on disk.
///
/// A response is found by method and URL, without the fragment, and by the request's fields that its
/// `Vary` names; fields that the request does not set itself match whatever the session sent. Any
/// thread may use it. Methods that give their result at once wait for the disk where they must, and
/// hold up nobody but their caller.
///
/// **A cache is for one user**, as that of a browser. Whose request it was does not count: what a server
/// lets a private cache store (`max-age`, `private`) in answer to one `Authorization` or `Cookie` answers
/// requests with another one, too, unless its `Vary` names the field. A program that acts for several
/// users, as a server that asks other servers in their names, gives each of them a session with a cache
/// of its own, or has sessions without one (`URLSessionConfiguration.urlCache = nil`). The cache of
/// `URLSession.shared` is one for all.
///
/// **Several caches on one path** in a process are one: the same responses, the same capacities, which
/// are those set last; one that had none on the disk, and gets some while another is there, has a place of
/// its own. **Several processes on one path** each have responses of their own, each within
/// its capacity: a process takes the first of the numbered places below the path that no other has, so
/// that one process after another finds what the one before stored. With a disk that fails or is full
/// it goes on in memory, and a line on standard error says so, once for each directory.
///
/// Subclasses: a session asks the methods that take a task.
///
/// Differs from Foundation's: query, scheme and method count; the directory holds a database, not a
/// file for each response; what is stored by a session follows RFC 9111 as a private cache.
open class URLCache: NSObject, @unchecked Sendable {
    // Invariant behind `@unchecked Sendable`: constants that are safe to share.

    /// Where a response may be stored.
    public enum StoragePolicy: UInt, Sendable {
        /// In memory and on disk.
        case allowed = 0
        /// In memory only: it never reaches the disk.
        case allowedInMemoryOnly = 1
        /// Nowhere: storing it does nothing.
        case notAllowed = 2
    }

    private static let current = Mutex<URLCache?>(nil)

    /// The cache of sessions that name no other.
    ///
    /// Unless one was set: 4 MiB in memory and 20 MiB on disk, below the user's directory for caches.
    /// Set it before anything uses the old one.
    open class var shared: URLCache {
        get {
            if let cache = Self.current.withLock({ $0 }) { return cache }
            let made = URLCache(memoryCapacity: 4 << 20, diskCapacity: 20 << 20, diskPath: nil)
            return Self.current.withLock { cache in
                if let cache { return cache }
                cache = made
                return made
            }
        }
        set {
            let before = Self.current.withLock { cache in
                defer { cache = newValue }
                return cache
            }
            // Released out of the lock: its end may be the program's code.
            withExtendedLifetime(before) {}
        }
    }

    let responses: CachedResponses
    private let overriding = Mutex<OverriddenCacheStore?>(nil)

    /// A cache with these capacities, in bytes.
    ///
    /// - Parameters:
    ///   - diskCapacity: 0: nothing of it is on a disk, until a capacity is set. A file takes 1 MiB at
    ///     least.
    ///   - path: a directory, made with its parents where it does not exist; nil: one of the program's
    ///     own below the user's directory for caches (`XDG_CACHE_HOME`).
    public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        let directory = path.map { URL(fileURLWithPath: $0, isDirectory: true).path }
        self.responses = CachedResponses(
            memory: memoryCapacity, disk: diskCapacity,
            directory: directory == Self.nowhere ? nil : directory ?? CachePlaces.usual)
        super.init()
    }

    /// No directory ever is there.
    ///
    /// A designated initialiser that takes none would have to be public, or subclasses would not inherit
    /// the convenience ones.
    private static let nowhere = "/dev/null"

    /// A cache that never has anything on a disk, whatever capacity it is given there.
    convenience init(inMemory capacity: Int) {
        self.init(memoryCapacity: capacity, diskCapacity: 0, diskPath: Self.nowhere)
    }

    /// A cache with these capacities, in bytes, in a directory.
    public convenience init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
        self.init(
            memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, diskPath: directory?.path)
    }

    /// A cache that keeps nothing until it is given a capacity.
    public convenience override init() {
        self.init(memoryCapacity: 0, diskCapacity: 0, diskPath: nil)
    }

    /// The store that a session's engine works on.
    ///
    /// A session must hold the cache as long as it uses it.
    var engineStore: any ObjectStore {
        if let store = self.overriddenStore { return store }
        return self.responses.store
    }

    /// The program's own methods as a store; nil where there are none.
    var overriddenStore: OverriddenCacheStore? {
        guard self.isOverridden else { return nil }
        return self.overriding.withLock { store in
            if let store { return store }
            let made = OverriddenCacheStore(self)
            store = made
            return made
        }
    }

    /// The largest body that a session stores by itself (§8.3): a twentieth of the disk's capacity, or of
    /// memory's where nothing goes to a disk.
    var largestBody: Int {
        let disk = self.diskCapacity
        return max(0, disk > 0 ? disk : self.memoryCapacity) / 20
    }

    /// Returns when what was stored and removed before is on the disk, or has failed.
    func flush() { self.responses.flush() }

    /// Whether methods of it may be a program's own.
    var isOverridden: Bool { type(of: self) != URLCache.self }

    // MARK: Capacities

    /// The bytes that responses may take in memory, with what it costs to keep them; what no longer fits
    /// leaves at once.
    open var memoryCapacity: Int {
        get { self.responses.memoryCapacity }
        set { self.responses.memoryCapacity = newValue }
    }

    /// The bytes that the file may take; what no longer fits leaves at once, and at 0 the file goes, too.
    ///
    /// Waits for the disk. What is being stored at that moment is not stored. Stays 0 where there is no
    /// place on a disk: in an ephemeral session's own cache, for a user without a home.
    open var diskCapacity: Int {
        get { self.responses.diskCapacity }
        set { self.responses.diskCapacity = newValue }
    }

    /// The bytes in use in memory.
    open var currentMemoryUsage: Int { self.responses.memoryUsage }

    /// The bytes in use on the disk, 0 where nothing is stored there.
    ///
    /// Waits for the disk: what was stored before counts.
    open var currentDiskUsage: Int { self.responses.diskUsage }

    // MARK: By request

    /// What is stored for a request, whatever its age; nil where nothing is.
    open func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        self.responses.find(request)
    }

    /// Stores a response in the place of what is stored for the request.
    ///
    /// Found from then on. On the disk, where it may go there, when this returns.
    open func storeCachedResponse(
        _ cachedResponse: CachedURLResponse, for request: URLRequest
    ) {
        self.responses.store(cachedResponse, for: request)
    }

    /// Removes what is stored for a request, in all variants; what is being loaded for it now is not
    /// stored either.
    open func removeCachedResponse(for request: URLRequest) {
        self.responses.remove(request)
    }

    /// Removes everything; what is being loaded now is not stored either.
    open func removeAllCachedResponses() {
        self.responses.removeAll()
    }

    /// Removes what was stored after the date.
    open func removeCachedResponses(since date: Date) {
        self.responses.removeAll(since: date)
    }

    // MARK: By task

    /// Stores a response for a task's request: what a session asks of a subclass.
    open func storeCachedResponse(
        _ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask
    ) {
        guard let request = dataTask.currentRequest ?? dataTask.originalRequest else { return }
        self.storeCachedResponse(cachedResponse, for: request)
    }

    /// Finds what is stored for a task's request: what a session asks of a subclass.
    ///
    /// - Parameter completionHandler: called once, on a queue of its own.
    open func getCachedResponse(
        for dataTask: URLSessionDataTask,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let request = dataTask.currentRequest ?? dataTask.originalRequest
        // Serial queues get threads of their own, however many others a program has blocked.
        DispatchQueue(label: "larder.url-cache").async {
            completionHandler(request.flatMap { self.cachedResponse(for: $0) })
        }
    }

    /// Removes what is stored for a task's request.
    open func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest ?? dataTask.originalRequest else { return }
        self.removeCachedResponse(for: request)
    }
}
