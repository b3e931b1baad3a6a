import LarderConfig
import LarderControl
import LarderHTTP

/// The stored responses to GET for one URL, in both tiers seen as one, and their bodies.
struct CacheCopies {
    let view: CacheView
    let url: String

    init(of url: String, in view: CacheView) throws(CommandFailure) {
        guard TargetURI(text: url) != nil else {
            throw CommandFailure(
                .data, "\"\(url)\" is no URL", remedy: "one begins with http://, https:// or ftp://"
            )
        }
        self.view = view
        self.url = url
    }

    /// The most recent first, without digests.
    func all() throws -> [CacheObject] {
        // Memory first: what comes down meanwhile is found in both, and told once.
        let resident = try self.inMemory()
        let objects = Self.joined(try self.view.disk?.objects(for: self.url) ?? [], resident)
        return objects.sorted {
            ($0.responseTimeMicroseconds, $0.requestTimeMicroseconds)
                > ($1.responseTimeMicroseconds, $1.requestTimeMicroseconds)
        }
    }

    /// What lies on disk and what lies in memory, each response once.
    ///
    /// Variants of a URL may be many: what is in both is found by its name on disk or the moment of
    /// its storing, and not by comparing all with all.
    static func joined(
        _ onDisk: [CacheObject], _ resident: [ResidentResponse]
    ) -> [CacheObject] {
        var objects = onDisk
        var named: [UInt64: Int] = [:]
        var stored: [Int64: [Int]] = [:]
        for (index, object) in onDisk.enumerated() {
            named[object.id] = index
            stored[object.storedTimeMicroseconds, default: []].append(index)
        }
        for response in resident {
            let object = CacheObject(response)
            let namesake = response.diskID.flatMap { named[$0] }
            let twin =
                namesake
                ?? stored[object.storedTimeMicroseconds]?.first {
                    objects[$0].tier == .disk && objects[$0].isCopy(of: object)
                }
            guard let twin else {
                objects.append(object)
                continue
            }
            objects[twin].tier = .both
            objects[twin].hits = max(objects[twin].hits, object.hits)
            objects[twin].lastUsedMicroseconds = max(
                objects[twin].lastUsedMicroseconds, object.lastUsedMicroseconds)
        }
        return objects
    }

    /// Hands over the body of one of them, piece by piece.
    func readBody(of object: CacheObject, _ piece: ([UInt8]) throws -> Void) throws {
        if object.tier != .memory, let disk = self.view.disk {
            return try disk.readBody(of: object, piece)
        }
        let name = self.view.session.name.text
        let isAsked = try self.view.ask(
            .readMemory(
                session: name, url: self.url, id: object.id, principal: self.view.principal)
        ) {
            if case .piece(let bytes) = $0 { try piece(bytes.bytes) }
            return true
        }
        guard isAsked else {
            throw CommandFailure(.nothingFound, "\(self.url): its body went with the proxy")
        }
    }

    private func inMemory() throws -> [ResidentResponse] {
        var found: [ResidentResponse] = []
        let name = self.view.session.name.text
        try self.view.askIfServed(
            .showMemory(session: name, url: self.url, principal: self.view.principal)
        ) {
            if case .resident(let response) = $0 { found.append(response) }
            return true
        }
        return found
    }
}

extension CacheObject {
    /// Whether both are copies of one response, stored in two tiers.
    fileprivate func isCopy(of other: CacheObject) -> Bool {
        self.storedTimeMicroseconds == other.storedTimeMicroseconds && self.method == other.method
            && self.partition == other.partition && self.bodyBytes == other.bodyBytes
            && self.variant == other.variant
    }

    init(_ response: ResidentResponse) {
        self.init(
            id: response.id, partition: response.partition, method: response.method,
            url: response.url, variant: response.variant.map(CacheField.init),
            status: response.status, reason: response.reason,
            fields: response.fields.map(CacheField.init),
            trailers: response.trailers.map(CacheField.init),
            requestTimeMicroseconds: response.requestTimeMicroseconds,
            responseTimeMicroseconds: response.responseTimeMicroseconds,
            storedTimeMicroseconds: response.storedTimeMicroseconds,
            lastUsedMicroseconds: response.lastUsedMicroseconds,
            freshness: Freshness(
                lifetimeMilliseconds: response.lifetimeMilliseconds,
                source: response.lifetimeSource,
                currentAgeMilliseconds: response.currentAgeMilliseconds),
            isInvalidated: response.isInvalidated, bodyBytes: response.bodyBytes,
            partial: response.partial.map { CachePartial($0) }, hits: response.hits, tier: .memory)
    }
}

extension CacheField {
    init(_ field: ControlField) {
        self.init(name: field.name, value: field.value)
    }
}
