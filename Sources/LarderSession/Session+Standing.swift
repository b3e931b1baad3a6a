import LarderHTTP
package import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Answers that stand.
extension Session {
    package func again(
        _ standing: StandingAnswer, cachePolicy: RequestCachePolicy?
    ) -> StandingAnswer.Repetition? {
        guard standing.rules == self.rules.current, standing.wasAsked(with: cachePolicy),
            self.credentials?.isEmpty != false,
            let moment = standing.moment(at: self.clock.now()),
            let used = self.use(standing, at: moment.time)
        else { return nil }
        var body: ByteBuffer?
        if !standing.range.isEmpty {
            guard let part = used.body?.part(standing.range) else { return nil }
            body = part
        }
        self.live.requests.add()
        self.live.reasons.add(.fresh)
        self.live.hits.add()
        self.live.bytesFromStore.add(UInt64(clamping: standing.range.count))
        self.recent.note(standing, at: moment.time, age: moment.age, ttl: moment.ttl)
        return StandingAnswer.Repetition(moment: moment, body: body)
    }
}

extension Session {
    /// What an answer stands on.
    private struct Used {
        let body: ByteBuffer?
    }

    /// What an answer stands on, once that is found to be as it was; notes the use of it.
    private func use(_ standing: StandingAnswer, at time: Timestamp) -> Used? {
        switch standing.place {
        case .resident(let mark):
            return self.store.useResident(mark, of: standing.key, at: time).map {
                Used(body: standing.range.isEmpty ? nil : $0.body.resident)
            }
        case .found(let place):
            return self.store.useAgain(at: place, of: standing.key, at: time).map {
                Used(body: $0)
            }
        }
    }
}

extension ByteBuffer {
    /// Bytes by their place among those that can be read; nil where they are not all there.
    func part(_ range: Range<Int>) -> ByteBuffer? {
        if range == 0..<self.readableBytes { return self }
        return self.getSlice(at: self.readerIndex + range.lowerBound, length: range.count)
    }
}

/// The number of the rules that a session follows: another one whenever they change, and no two
/// sessions of a process ever have the same.
struct RulesNumber: ~Copyable, Sendable {
    private static let last = Atomic<UInt64>(0)
    private let number = Atomic<UInt64>(RulesNumber.next())

    private static func next() -> UInt64 { self.last.wrappingAdd(1, ordering: .relaxed).newValue }

    var current: UInt64 { self.number.load(ordering: .acquiring) }

    /// To be called when the change can be seen.
    func change() { self.number.store(Self.next(), ordering: .releasing) }
}

extension ClientExchange {
    /// What the answer from one of the objects stands on, if it does at all.
    ///
    /// - Parameter objects: all that was found under the key.
    func standing(
        on objects: [StoredObject], _ index: Int, _ freshness: Freshness
    ) -> StandingGround? {
        guard self.keepsStanding, freshness.isFresh, self.body == nil,
            !self.configuration.showsCacheKey,
            // What they ask may hold at one moment and not at the next.
            !self.request.fields.contains(FieldName(.cacheControl)),
            !self.request.fields.contains(FieldName(.pragma)),
            // When a group is invalidated nothing changes under the keys.
            !objects.contains(where: { CacheGroups.hasAny($0.head) }),
            self.dependsOnRequestAlone(objects),
            let place = self.place(of: objects, index),
            self.session.rules.current == self.rules
        else { return nil }
        let isByGist = !objects.contains { object in
            Variance.depends(object.head) { RequestGist.leavesOut($0.known) }
        }
        return StandingGround(
            place: place, freshness: freshness, received: objects[index].head.responseTime,
            isByGist: isByGist)
    }
}

extension ClientExchange {
    /// Whether what the session adds to a request by itself says nothing about which of these answers
    /// it.
    private func dependsOnRequestAlone(_ objects: [StoredObject]) -> Bool {
        switch self.configuration.role {
        case .intermediary:
            return self.gate == nil && self.request.sealed == nil
                && self.session.conduct?.isOnlyCredentials != false
                // A proxy may have added it: requests of the same bytes have another from each client.
                && !objects.contains { Variance.depends($0.head, on: FieldName(.forwarded)) }
        case .userAgent:
            // A gate is asked about what is fetched alone; cookies and credentials, which may be others
            // the next time, choose among variants.
            return !objects.contains { $0.head.fields.contains(FieldName(.vary)) }
        }
    }

    private func place(of objects: [StoredObject], _ index: Int) -> StandingPlace? {
        let store = self.session.store
        if let mark = store.residentMark(of: objects[index].id, among: objects, under: self.key) {
            return .resident(mark)
        }
        // What is read with its head is read anew each time; what is not, is not for the reading loop.
        guard objects[index].tier == .disk, objects[index].body.resident != nil,
            objects.count <= FoundPlace.mostObjects
        else { return nil }
        return .found(FoundPlace(of: objects, index))
    }
}

/// What an answer stands on.
struct StandingGround {
    let place: StandingPlace
    let freshness: Freshness
    let received: Timestamp
    /// All requests of the same gist get it.
    let isByGist: Bool
}
