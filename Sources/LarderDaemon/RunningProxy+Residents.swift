import LarderControl
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore

// What lies in memory, as commands are told of it.

extension RunningProxy {
    /// Lists the memory tier in steps: neither side ever holds all of it, and between two steps the
    /// client must have taken what it was sent.
    static func listMemory(
        of session: Session, copiesInFull: Bool,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        let now = SystemClock().now()
        let policy = session.configuration.policy
        var copies = ResidentCopies()
        var objects = ObjectBatch()
        var place: ResidentPlace? = .start
        while let here = place {
            let page = session.store.residentObjects(from: here)
            place = page.next
            for resident in page.objects {
                guard let id = resident.lowerID, !copiesInFull else {
                    let object = MemoryObject(resident, at: now, policy: policy)
                    if let full = objects.add(object) { try await reply(.objects(full)) }
                    continue
                }
                copies.ids.append(id.rawValue)
                copies.hits.append(resident.object.hits)
            }
            if copies.ids.count >= ResidentCopies.limit / 2 {
                try await reply(.copies(copies))
                copies = ResidentCopies()
            }
            // A client that takes everything at once must not keep the others waiting.
            await Task.yield()
        }
        if !copies.ids.isEmpty { try await reply(.copies(copies)) }
        if !objects.isEmpty { try await reply(.objects(objects.take())) }
    }

    /// What memory holds of the responses to GET for a URL.
    static func showMemory(
        of member: RunningSession, url: String, _ principal: String?,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        let now = SystemClock().now()
        let session = member.session
        for resident in try Self.residents(of: member, url: url, principal) {
            let configuration = session.configuration.policy
            try await reply(
                .resident(
                    ResidentResponse(
                        resident, at: now, policy: configuration, in: session.store)))
        }
    }

    /// Sends the body of a response that lies in memory, in pieces of bounded size.
    static func readMemory(
        of member: RunningSession, url: String, id: UInt64, _ principal: String?,
        _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        let found = try Self.residents(of: member, url: url, principal).first {
            $0.object.id.rawValue == id || $0.lowerID?.rawValue == id
        }
        guard let body = found?.object.body.resident else {
            throw ControlRefusal(
                failure: ControlFailure(.notFound, "\(url): its body lies in memory no more"))
        }
        var rest = body
        while let piece = rest.readBytes(length: min(rest.readableBytes, BodyPiece.largest)),
            !piece.isEmpty
        {
            try await reply(.piece(BodyPiece(piece)))
        }
    }

    /// What memory holds of one principal, or of all that are in memory.
    private static func residents(
        of member: RunningSession, url: String, _ principal: String?
    ) throws -> [ResidentObject] {
        guard let uri = TargetURI(text: url) else {
            throw ControlRefusal(
                failure: ControlFailure(
                    .invalid,
                    "\"\(url)\" is no URL; one begins with http://, https:// or ftp://"))
        }
        let store = member.session.store
        let partitions = principal.map { [CacheKey.partition(of: $0)] } ?? member.partitions
        return partitions.flatMap { partition in
            let key = CacheKey(method: .get, uri: uri, partition: partition)
            // What answers several queries lies where the query does not count.
            return store.residentObjects(of: key)
                + store.residentObjects(of: key.withoutSearch).filter {
                    $0.object.head.answers(uri)
                }
        }
    }
}

extension MemoryObject {
    init(_ resident: ResidentObject, at now: Timestamp, policy: PolicyConfiguration) {
        let object = resident.object
        let freshness = Freshness.of(
            object.head, at: now, configuration: policy.resolved(forKey: object.key))
        let parts = object.key.parts
        let remaining = freshness.remaining.inMicroseconds / 1000
        let variant = object.head.controlVariant
        self.init(
            id: (resident.lowerID ?? object.id).rawValue, partition: parts.partition,
            method: parts.method, url: object.key.url(of: object.head),
            status: Int(object.head.status.rawValue), bytes: object.bodyLength,
            ageMilliseconds: freshness.currentAge.inMicroseconds / 1000,
            freshForMilliseconds: object.head.isInvalidated ? min(0, remaining) : remaining,
            hits: object.hits, isOnDisk: resident.lowerID != nil,
            partial: object.head.extent.map { PartialObject($0) },
            lastUsedMicroseconds: object.lastUsed.microseconds,
            landingMicroseconds: resident.isLanding ? object.head.storedTime.microseconds : nil,
            variant: variant.isEmpty ? nil : variant)
    }
}

extension ResidentResponse {
    init(
        _ resident: ResidentObject, at now: Timestamp, policy: PolicyConfiguration,
        in store: any ObjectStore
    ) {
        let object = resident.object
        let head = object.head
        let parts = object.key.parts
        let freshness = Freshness.of(
            head, at: now, configuration: policy.resolved(forKey: object.key))
        let url = object.key.url(of: head)
        let isInvalidated = TargetURI(text: url).map { uri in
            CacheGroups.isInvalidated(head) { group in
                store.groupInvalidation(
                    of: CacheGroups.name(of: group, at: uri, partition: parts.partition))
            }
        }
        self.init(
            id: object.id.rawValue, diskID: resident.lowerID?.rawValue,
            partition: parts.partition, method: parts.method, url: url,
            variant: head.controlVariant,
            status: Int(head.status.rawValue), reason: head.reason,
            fields: head.fields.pairs.map { ControlField(name: $0.name, value: $0.value) },
            trailers: object.trailers.pairs.map { ControlField(name: $0.name, value: $0.value) },
            requestTimeMicroseconds: head.requestTime.microseconds,
            responseTimeMicroseconds: head.responseTime.microseconds,
            storedTimeMicroseconds: head.storedTime.microseconds,
            lastUsedMicroseconds: object.lastUsed.microseconds,
            lifetimeMilliseconds: freshness.lifetime.inMicroseconds / 1000,
            lifetimeSource: freshness.source.rawValue,
            currentAgeMilliseconds: freshness.currentAge.inMicroseconds / 1000,
            isInvalidated: head.isInvalidated || isInvalidated == true,
            bodyBytes: object.bodyLength, partial: head.extent.map { PartialObject($0) },
            hits: object.hits)
    }
}

extension StoredHead {
    fileprivate var controlVariant: [ControlField] {
        self.variant.map { ControlField(name: $0.name, value: $0.value) }
    }
}

extension PartialObject {
    fileprivate init(_ extent: StoredExtent) {
        self.init(
            // None of them is empty.
            ranges: extent.ranges.map { $0.lowerBound...max($0.lowerBound, $0.upperBound &- 1) },
            completeLength: extent.completeLength)
    }
}
