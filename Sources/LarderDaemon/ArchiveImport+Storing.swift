import LarderArchive
import LarderConfig
import LarderControl
import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore

// One response: what it is to be stored as, whether it may be, and its body.
extension ArchiveImport {
    /// A response in the archive, with what led to it.
    struct Found {
        var record: WARCHead
        var uri: TargetURI
        /// When it was received.
        var date: Timestamp
        var request: ArchivedRequest
    }

    /// A stored response of which more parts follow.
    struct OpenParts {
        var object: String
        var id: ObjectID
        var key: CacheKey
    }

    /// What a response is stored as.
    private struct Plan {
        var head: StoredHead
        var request: Request
        var partition = ""
        var trailers = Fields()
        var length: UInt64?
        /// Which stored response it is a part of; in Larder's own archives alone.
        var object: String?
        var part: ArchivedResponse.Part?
        var configuration: PolicyConfiguration
    }

    private struct Block {
        var reader: ResponseBlock
        var pending = ByteBuffer()
        var digest: BlockDigest?
    }

    func store(_ found: Found) throws {
        var block = Block(
            reader: ResponseBlock(
                to: found.request.head.method, blockLength: found.record.contentLength),
            digest: BlockDigest(found.record.fields.string("WARC-Block-Digest")))
        guard case .head(let head, let length)? = try self.next(&block) else {
            throw Refusal("malformed", "the response has no head")
        }
        let plan = try self.plan(found, head, length)
        try self.store(plan) { pending in try self.copy(&block, to: pending, plan) }
    }

    /// Stores a response whose content is at hand.
    func store(_ found: Found, _ head: ResponseHead, _ content: [UInt8]) throws {
        let plan = try self.plan(found, head, .known(UInt64(content.count)))
        try self.store(plan) { pending in
            var rest = content[...]
            while !rest.isEmpty, pending.write(ByteBuffer(bytes: rest.prefix(Self.pieceSize))) {
                rest = rest.dropFirst(Self.pieceSize)
            }
            pending.commit(trailers: plan.trailers, counts: (plan.part?.index ?? 0) == 0)
        }
    }

    private static let pieceSize = 65_536
    private static let smallBody: UInt64 = 262_144

    private func store(_ plan: Plan, _ fill: (PendingResponse) throws -> Void) throws {
        let (key, stored) = Storability.place(
            plan.head, for: plan.request, partition: plan.partition,
            configuration: plan.configuration)
        let pending = try self.begin(plan, stored, key)
        do {
            try fill(pending)
        } catch {
            pending.abandon()
            throw error
        }
        // Many small ones share a commit; large ones would lie in memory side by side.
        if plan.length ?? .max > Self.smallBody { _ = pending.outcome() }
        try self.keepOpen(plan, key, pending)
    }

    // MARK: What it is

    private func plan(
        _ found: Found, _ head: ResponseHead, _ length: BodyLength
    ) throws(Refusal) -> Plan {
        ArchivedResponse.isOwn(found.record)
            ? try self.ownPlan(found, head, length) : try self.foreignPlan(found, head, length)
    }

    /// What Larder has written comes back as it was, if this session may have it at all: another one
    /// may have stored what is private.
    private func ownPlan(
        _ found: Found, _ head: ResponseHead, _ length: BodyLength
    ) throws(Refusal) -> Plan {
        let own: ArchivedResponse
        do throws(ArchivedResponse.Damage) {
            guard let content = length.knownBytes else { throw .fields }
            own = try ArchivedResponse(
                found.record, head, request: found.request.head.fields, contentLength: content)
        } catch {
            throw Refusal("malformed", error.rawValue)
        }
        try self.requireReachable(own.partition)
        let configuration = self.target.policy.resolved(for: own.uri)
        var request = Request(uri: own.uri, fields: own.varyingFields)
        if own.answersCredentials { request.isAuthorized = true }
        let verdict = Storability.judge(
            request: request,
            response: ResponseHead(status: own.status, reason: own.reason, fields: own.fields),
            bodyLength: .unknown, now: found.date, configuration: configuration)
        if let reason = verdict.refusal { throw Refusal(reason.rawValue) }
        let stored = StoredHead(
            method: own.method, status: own.status, reason: own.reason, fields: own.fields,
            varyingFields: own.varyingFields, requestTime: min(own.requestTime, found.date),
            responseTime: found.date, storedTime: min(own.storedTime, self.target.now()),
            isInvalidated: own.isInvalidated, answersCredentials: own.answersCredentials,
            extent: own.part.map {
                StoredExtent(completeLength: $0.completeLength, ranges: [$0.range])
            })
        return Plan(
            head: stored, request: request, partition: own.partition, trailers: own.trailers,
            length: own.contentLength, object: found.record.fields.string("Larder-Object"),
            part: own.part, configuration: configuration)
    }

    /// Nothing is stored that no client of the session could reach: each is answered from the partition of
    /// its own principal alone.
    private func requireReachable(_ partition: String) throws(Refusal) {
        if self.target.principals.mayHave(CacheKey.principal(of: partition)) { return }
        throw Refusal(
            partition.isEmpty ? ImportOutcome.ofNoPrincipal : ImportOutcome.ofOtherPrincipals)
    }

    private func foreignPlan(
        _ found: Found, _ head: ResponseHead, _ length: BodyLength
    ) throws(Refusal) -> Plan {
        try self.requireReachable("")
        let configuration = self.target.policy.resolved(for: found.uri)
        let request = found.request.request(to: found.uri)
        let verdict = Storability.judge(
            request: request, response: head, bodyLength: length, now: found.date,
            configuration: configuration)
        if let reason = verdict.refusal { throw Refusal(reason.rawValue) }
        guard head.status == .partialContent else {
            let stored = StoredHead(
                storing: head, to: request, requestTime: found.date, responseTime: found.date,
                configuration: configuration)
            return Plan(
                head: stored, request: request, length: length.knownBytes,
                configuration: configuration)
        }
        guard
            case .part(let part) = PartialContent.read(head, bodyLength: length, to: request)
        else { throw Refusal(PolicyReason.partialResponse.rawValue) }
        let stored = StoredHead(
            storing: head, part: part, to: request, requestTime: found.date,
            responseTime: found.date, configuration: configuration)
        return Plan(
            head: stored, request: request, length: part.length, configuration: configuration)
    }

    // MARK: Where it goes

    private func begin(
        _ plan: Plan, _ head: StoredHead, _ key: CacheKey
    ) throws(Refusal) -> PendingResponse {
        if let part = plan.part, part.index > 0 {
            // The first one was not taken, or the records are not in order.
            guard let open = self.openParts, open.object == plan.object, open.key == key else {
                throw Refusal("part-of-refused")
            }
            let pending = self.storing.extend(
                open.id, of: key, range: part.range, completeLength: part.completeLength)
            guard let pending else { throw Refusal("store-refuses") }
            return pending
        }
        self.openParts = nil
        let replacing = try self.replaced(by: head, plan, key)
        let pending = self.storing.begin(
            head, for: key, length: plan.length, replacing: replacing)
        guard let pending else { throw Refusal("store-refuses") }
        return pending
    }

    /// Whose place it takes: never that of a response that is newer.
    private func replaced(
        by head: StoredHead, _ plan: Plan, _ key: CacheKey
    ) throws(Refusal) -> [ObjectID] {
        let lying = self.storing.lookup(key).filter { $0.key == key }
        // Under a key without the query lie answers to others, too.
        let stored =
            key.leavesOutSearch ? lying.filter { $0.head.answers(plan.request.uri) } : lying
        let indices = Variance.replaced(
            by: head, to: plan.request, among: stored.map(\.head),
            configuration: plan.configuration)
        for index in indices where stored[index].head.responseTime >= head.responseTime {
            let isSame = stored[index].head.responseTime == head.responseTime
            throw Refusal(isSame ? "stored-already" : "newer-stored")
        }
        // A part of a stranger's must not take the place of what may be whole.
        if head.extent != nil, plan.object == nil, !stored.isEmpty { throw Refusal("newer-stored") }
        var ids = indices.map { stored[$0].id }
        guard key.leavesOutSearch else { return ids }
        let others = lying.filter { !ids.contains($0.id) }
            .sorted { $0.head.responseTime < $1.head.responseTime }
        let excess = others.count - max(1, plan.configuration.maximumVariants) + 1
        if excess > 0 { ids += others.prefix(excess).map(\.id) }
        return ids
    }

    // MARK: Its body

    private func next(_ block: inout Block) throws -> ResponseBlock.Event? {
        while true {
            do throws(ResponseBlock.Failure) {
                switch try block.reader.next(&block.pending) {
                case .needMore: break
                case let event: return event
                }
            } catch {
                throw Self.refusal(error)
            }
            guard var piece = try self.nextPiece() else { return nil }
            block.digest?.update(piece)
            block.pending.discardReadBytes()
            block.pending.writeBuffer(&piece)
        }
    }

    private static func refusal(_ failure: ResponseBlock.Failure) -> Refusal {
        switch failure {
        case .malformed(let error):
            Refusal("malformed", "\(error.reason.rawValue): \(error.detail)")
        case .wrongLength: Refusal("malformed", "the content is not as long as its head says")
        case .incomplete: Refusal("malformed", "the response ends too early")
        }
    }

    private func copy(_ block: inout Block, to pending: PendingResponse, _ plan: Plan) throws {
        var isTaken = true
        while case .piece(let piece)? = try self.next(&block) {
            // A copy of its own: a small body must not hold what was read around it.
            if isTaken { isTaken = pending.write(ByteBuffer(bytes: piece.readableBytesView)) }
            guard !self.target.isCancelled() else { throw Cancelled() }
        }
        let trailers: Fields
        do throws(ResponseBlock.Failure) {
            trailers = try block.reader.finish()
        } catch {
            throw Self.refusal(error)
        }
        if block.digest?.agrees == false {
            throw Refusal("wrong-digest", "the block is not what its digest says")
        }
        pending.commit(
            trailers: plan.object == nil ? trailers : plan.trailers,
            counts: (plan.part?.index ?? 0) == 0)
    }

    /// Where more parts follow, they need to know of what.
    private func keepOpen(_ plan: Plan, _ key: CacheKey, _ pending: PendingResponse) throws {
        guard let part = plan.part, part.count > part.index + 1, let object = plan.object else {
            return
        }
        guard part.index == 0 else { return }
        if case .visible(let id) = pending.outcome() {
            self.openParts = OpenParts(object: object, id: id, key: key)
        }
    }
}
