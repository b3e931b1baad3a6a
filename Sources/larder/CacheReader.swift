import LarderConfig
import LarderControl
import LarderDaemon
import LarderDisk
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderStore

/// The cache of a session on disk.
enum CacheReader {
    /// Opens the cache for looking; nil where there is none yet.
    ///
    /// - Throws: `CommandFailure` where there is one that cannot be read.
    static func open(
        directory: String, session: SessionSettings, loaded: LoadedSettings
    ) throws -> (any CacheReading)? {
        do throws(StoreError) {
            return DiskCacheReader(
                try DiskInspector(directory: directory), loaded.blueprint(of: session))
        } catch {
            if error.code == .missing { return nil }
            throw CommandFailure(
                .unavailable, "\(error.path): \(error.cause)", remedy: error.remedy)
        }
    }
}

/// Looks into a cache by way of the disk tier's inspector.
///
/// Used by one thread at a time.
private final class DiskCacheReader: CacheReading {
    private let inspector: DiskInspector
    private let blueprint: SessionBlueprint
    /// What `objects` gave last, for `readBody`.
    private var inspected: [UInt64: InspectedObject] = [:]

    init(_ inspector: DiskInspector, _ blueprint: SessionBlueprint) {
        self.inspector = inspector
        self.blueprint = blueprint
    }

    private var policy: PolicyConfiguration { self.blueprint.policy }

    func forEach(_ body: (CacheRow) throws -> Bool) throws {
        let now = SystemClock().now()
        try self.inspector.forEachObject { object in
            try body(CacheRow(object, at: now, self.policy))
        }
    }

    func objects(for url: String) throws -> [CacheObject] {
        guard let uri = TargetURI(text: url) else {
            throw CommandFailure(
                .usage, "\(url) is no http, https or ftp URL", remedy: "give it with its scheme")
        }
        let now = SystemClock().now()
        let found = try self.inspector.objects(for: CacheKey(method: .get, uri: uri))
        for object in found { self.inspected[object.id.rawValue] = object }
        return found.map { CacheObject($0, at: now, self.policy) }
    }

    func readBody(of object: CacheObject, _ piece: ([UInt8]) throws -> Void) throws {
        guard let object = self.inspected[object.id] else { return }
        try self.inspector.readBody(of: object) { span in
            var bytes: [UInt8] = []
            bytes.reserveCapacity(span.count)
            for index in span.indices { bytes.append(span[index]) }
            try piece(bytes)
        }
    }

    func figures() throws -> CacheFigures {
        let figures = try self.inspector.statistics()
        return CacheFigures(
            objects: figures.objects, bodyBytes: figures.bodyBytes, usedBytes: figures.usedBytes,
            fileBytes: figures.fileBytes,
            capacityBytes: self.blueprint.disk?.capacity.bytes ?? figures.mapBytes,
            hits: figures.hits, evictions: figures.evictions, damaged: figures.damaged)
    }

    func purge(_ selection: CacheSelection) async throws -> Int {
        guard let configuration = self.blueprint.disk else { return 0 }
        let store: DiskStore
        do throws(StoreError) {
            store = try DiskStore.open(
                configuration, clock: { SystemClock().now() }, report: { _ in })
        } catch {
            throw CommandFailure(
                .unavailable, "\(error.path): \(error.cause)", remedy: error.remedy)
        }
        let removed = try await Purge.run(selection, on: store)
        await withCheckedContinuation { continuation in
            store.close { continuation.resume() }
        }
        return removed
    }
}

extension CacheRow {
    fileprivate init(_ object: InspectedObject, at now: Timestamp, _ policy: PolicyConfiguration) {
        let freshness = LarderPolicy.Freshness.of(object.head, at: now, configuration: policy)
        let parts = object.key.parts
        self.init(
            partition: parts.partition, method: parts.method, url: parts.uri,
            status: Int(object.head.status.rawValue), bytes: object.bodyLength,
            ageMilliseconds: freshness.currentAge.inMicroseconds / 1000,
            freshForMilliseconds: object.head.isInvalidated
                ? 0 : freshness.remaining.inMicroseconds / 1000,
            hits: object.hits, tier: .disk)
    }
}

extension CacheObject {
    fileprivate init(_ object: InspectedObject, at now: Timestamp, _ policy: PolicyConfiguration) {
        let freshness = LarderPolicy.Freshness.of(object.head, at: now, configuration: policy)
        let parts = object.key.parts
        self.init(
            id: object.id.rawValue, partition: parts.partition, method: parts.method,
            url: parts.uri, variant: Self.fields(object.head.varyingFields),
            status: Int(object.head.status.rawValue), reason: object.head.reason,
            fields: Self.fields(object.head.fields), trailers: Self.fields(object.trailers),
            requestTimeMicroseconds: object.head.requestTime.microseconds,
            responseTimeMicroseconds: object.head.responseTime.microseconds,
            storedTimeMicroseconds: object.head.storedTime.microseconds,
            lastUsedMicroseconds: object.lastUsed.microseconds,
            freshness: Freshness(
                lifetimeMilliseconds: freshness.lifetime.inMicroseconds / 1000,
                source: "\(freshness.source)",
                currentAgeMilliseconds: freshness.currentAge.inMicroseconds / 1000),
            isInvalidated: object.head.isInvalidated, bodyBytes: object.bodyLength,
            hits: object.hits, tier: .disk)
    }

    private static func fields(_ fields: Fields) -> [CacheField] {
        fields.pairs.map { CacheField(name: $0.name, value: $0.value) }
    }
}
