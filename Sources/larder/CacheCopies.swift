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
        var objects = try self.view.disk?.objects(for: self.url) ?? []
        for response in resident {
            let object = CacheObject(response)
            let twin = objects.firstIndex {
                $0.id == response.diskID || ($0.tier == .disk && $0.isCopy(of: object))
            }
            if let twin {
                objects[twin].tier = .both
                objects[twin].hits = max(objects[twin].hits, object.hits)
                objects[twin].lastUsedMicroseconds = max(
                    objects[twin].lastUsedMicroseconds, object.lastUsedMicroseconds)
            } else {
                objects.append(object)
            }
        }
        return objects.sorted {
            ($0.responseTimeMicroseconds, $0.requestTimeMicroseconds)
                > ($1.responseTimeMicroseconds, $1.requestTimeMicroseconds)
        }
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
        func fields(_ fields: [ControlField]) -> [CacheField] {
            fields.map { CacheField(name: $0.name, value: $0.value) }
        }
        self.init(
            id: response.id, partition: response.partition, method: response.method,
            url: response.url, variant: fields(response.variant), status: response.status,
            reason: response.reason, fields: fields(response.fields),
            trailers: fields(response.trailers),
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
