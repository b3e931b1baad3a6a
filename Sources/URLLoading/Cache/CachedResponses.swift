import Foundation
import LarderDisk
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Larder's store as a cache of a program's own: `URLRequest` and `CachedURLResponse` to keys, heads
/// and bodies.
final class CachedResponses: Sendable {
    /// The rules of a private cache (RFC 9111 §1).
    static let policy = PolicyConfiguration(kind: .private)

    private let shared: SharedStore
    private let clock = SystemClock()

    var store: TieredStore { self.shared.store }

    /// - Parameter directory: nil: never on a disk.
    init(memory: Int, disk: Int, directory: String?) {
        self.shared = OpenStores.store(
            memory: Self.bytes(memory), disk: Self.bytes(disk), directory: directory,
            report: DiskNotices.cache(directory ?? ""))
    }

    /// A capacity that is no number of bytes is none, and one beyond what can be mapped that.
    private static func bytes(_ capacity: Int) -> ByteCount {
        min(ByteCount(UInt64(max(0, capacity))), DiskConfiguration.maximumCapacity)
    }

    // MARK: Capacities

    var memoryCapacity: Int {
        get { self.shared.memoryCapacity.clamped }
        set { self.shared.resizeMemory(to: Self.bytes(newValue)) }
    }

    var diskCapacity: Int {
        get { self.shared.diskCapacity.clamped }
        set {
            Awaited<Void>.of { done in self.shared.resizeDisk(to: Self.bytes(newValue)) { done(()) }
            }
        }
    }

    var memoryUsage: Int { Int(clamping: self.store.statistics().memory.bytes) }

    var diskUsage: Int {
        self.flush()
        guard let disk = self.store.statistics().disk, disk.objects > 0 else { return 0 }
        return Int(clamping: disk.bytes)
    }

    /// Returns when what was stored and removed before is on the disk, or has failed.
    func flush() {
        Awaited<Void>.of { done in self.shared.flush { done(()) } }
    }

    // MARK: Finding

    func find(_ request: URLRequest) -> CachedURLResponse? {
        guard let address = CacheAddress(request) else { return nil }
        for key in address.keys {
            let objects =
                self.store.lookupResident(key)
                ?? Awaited<[StoredObject]>.of { done in self.store.lookup(key, done) }
            guard let object = address.select(among: objects),
                let cached = self.cached(object, address)
            else { continue }
            self.store.noteUse(object.id, of: object.key, at: self.clock.now())
            return cached
        }
        return nil
    }

    private func cached(_ object: StoredObject, _ address: CacheAddress) -> CachedURLResponse? {
        let (response, userInfo) = StoredResponse.read(object.head, at: address.url)
        let policy: URLCache.StoragePolicy =
            object.head.staysInMemory ? .allowedInMemoryOnly : .allowed
        guard let body = Self.body(of: object) else { return nil }
        return CachedURLResponse(
            response: response, body: body, userInfo: userInfo, storagePolicy: policy,
            varyingFields: object.head.varyingFields)
    }

    /// nil where it cannot be read; waits for the disk where it lies there.
    private static func body(of object: StoredObject) -> CachedBody? {
        if let body = object.body.resident {
            return CachedBody(reading: { Data(body.readableBytesView) })
        }
        let source = object.body.reader(range: 0..<object.bodyLength)
        let pieces = Awaited<[ByteBuffer]?>.of { done in BodyCollector(source, done).begin() }
        return pieces.map { CachedBody(self.data($0)) }
    }

    static func data(_ pieces: [ByteBuffer]) -> Data {
        var data = Data()
        data.reserveCapacity(pieces.reduce(0) { $0 + $1.readableBytes })
        for piece in pieces { data.append(contentsOf: piece.readableBytesView) }
        return data
    }

    // MARK: Storing

    /// - Parameter begun: from before it was loaded, so that what was removed since does not come
    ///   back; nil: it is stored as it is now.
    func store(
        _ cached: CachedURLResponse, for request: URLRequest, begun: RemovalMark? = nil
    ) {
        guard cached.storagePolicy != .notAllowed, let address = CacheAddress(request) else {
            return
        }
        let head = StoredResponse.head(cached, to: address, at: self.clock.now())
        let begun = begun ?? self.store.removalMark()
        Awaited<Void>.of { done in
            self.store.lookup(address.key) { objects in
                let replaced = Variance.replaced(
                    by: head, to: address.sent, among: objects.map(\.head),
                    configuration: Self.policy
                ).map { objects[$0].id }
                ResponseWriter.write(
                    cached.data, head, for: address.key, replacing: replaced, begun: begun,
                    into: self.store
                ) {
                    // Memory has it by now; the disk is waited for where the policy lets it go there.
                    if cached.storagePolicy != .allowed { return done(()) }
                    self.shared.flush { done(()) }
                }
            }
        }
    }

    /// Stores a response in the place of one that a session has loaded; returns at once.
    func store(_ cached: CachedURLResponse, inPlaceOf loaded: StoredResponse.Loaded) {
        guard cached.storagePolicy != .notAllowed else { return }
        ResponseWriter.write(
            cached.data, StoredResponse.head(cached, like: loaded.head), for: loaded.key,
            replacing: loaded.replacing, begun: loaded.removals, into: self.store
        ) {}
    }

    // MARK: Removing

    func remove(_ request: URLRequest) {
        guard let address = CacheAddress(request) else { return }
        Awaited<Void>.of { done in
            self.store.removeWithSearch(address.key) { _ in done(()) }
        }
    }

    func removeAll() {
        Awaited<Void>.of { done in
            self.store.removeAll(in: .all) { _ in self.shared.flush { done(()) } }
        }
    }

    func removeAll(since date: Date) {
        let time = Timestamp(date) + .microseconds(1)
        Awaited<Void>.of { done in self.store.removeAll(storedSince: time) { done(()) } }
    }
}

/// The user's home.
enum HomeDirectory {
    /// What `HOME` says, as the XDG base directory specification has it, else the user database; nil where
    /// neither has one.
    ///
    /// `NSHomeDirectory()` looks into the database alone.
    static var path: String? {
        let said = ProcessInfo.processInfo.environment["HOME"] ?? ""
        let home = said.hasPrefix("/") ? said : NSHomeDirectory()
        return home.hasPrefix("/") ? home : nil
    }
}

/// Where the caches of programs lie that name no place.
enum CachePlaces {
    /// `$XDG_CACHE_HOME/<program>/URLCache`; nil where the user has no home.
    static var usual: String? {
        let environment = ProcessInfo.processInfo.environment
        var caches = environment["XDG_CACHE_HOME"] ?? ""
        if !caches.hasPrefix("/") {
            // The XDG base directory specification: a relative path is to be ignored.
            guard let home = HomeDirectory.path else { return nil }
            caches = home + "/.cache"
        }
        return "\(caches)/\(self.program)/URLCache"
    }

    private static var program: String {
        let name = Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName
        let plain = String(name.map { "/\\:".contains($0) ? "_" : $0 })
        return plain.isEmpty || plain.hasPrefix(".") ? "_" + plain : plain
    }
}

extension Timestamp {
    /// The moment that a date names; one that is out of range is the nearest that is not.
    init(_ date: Date) {
        let microseconds = date.timeIntervalSince1970 * 1_000_000
        if let exact = Int64(exactly: microseconds.rounded(.down)) {
            self.init(microseconds: exact)
        } else {
            self.init(microseconds: microseconds < 0 ? .min : .max)
        }
    }
}
