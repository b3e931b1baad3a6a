import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import SeededNumbers
import Synchronization

extension SplitMix64 {
    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
}

/// How the origin tells one version from the next.
enum Telling: String, Sendable, CaseIterable {
    case strongTag
    /// All versions have one weak tag.
    case weakTag
    /// All versions were modified in the second of their `Date`.
    case weakDate
    case nothing
}

/// The versions of a representation: no two agree in any byte.
enum Version {
    static func length(_ version: Int) -> Int { 150_000 + version * 37_717 % 200_000 }

    private static let made = Mutex<[Int: ByteBuffer]>([:])

    /// Its bytes in a range; nil where it has none there.
    static func bytes(_ version: Int, _ start: Int, _ count: Int) -> ByteBuffer? {
        let whole = self.made.withLock { made in
            if let whole = made[version] { return whole }
            let pattern = (0..<251).map { UInt8(truncatingIfNeeded: $0 &+ version &* 101) }
            var whole = ByteBuffer()
            while whole.readableBytes < Self.length(version) { whole.writeBytes(pattern) }
            whole.moveWriterIndex(to: Self.length(version))
            made[version] = whole
            return whole
        }
        return whole.getSlice(at: start, length: count)
    }

    static func tag(_ version: Int) -> String { "\"v\(version)\"" }
}

/// An origin whose representation changes, which breaks off, gives less than it was asked for, and
/// otherwise keeps to the RFC.
final class ChangingOrigin: Upstream {
    private struct State {
        var random: SplitMix64
        var version = 0
    }

    let telling: Telling
    private let clock: StandingClock
    private let state: Mutex<State>
    private let start: Timestamp

    init(_ telling: Telling, seed: UInt64, clock: StandingClock) {
        self.telling = telling
        self.clock = clock
        self.start = clock.now()
        self.state = Mutex(State(random: SplitMix64(seed: seed)))
    }

    var version: Int { self.state.withLock { $0.version } }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        let (version, random) = self.state.withLock { state in
            if state.random.chance(4) { state.version += 1 }
            return (state.version, SplitMix64(seed: state.random.next()))
        }
        let fetch = Fetch()
        Task { await self.answer(request, version, random, receiver, fetch) }
        return fetch
    }

    /// One answer on its way.
    final class Fetch: UpstreamFetch {
        private struct State {
            var isCancelled = false
            var isResumed = false
            var waiting: CheckedContinuation<Void, Never>?
        }

        private let state = Mutex(State())

        var isCancelled: Bool { self.state.withLock { $0.isCancelled } }

        func willAsk() { self.state.withLock { $0.isResumed = false } }

        func resume() {
            self.state.withLock { state in
                state.isResumed = true
                return state.waiting.take()
            }?.resume()
        }

        func cancel() {
            self.state.withLock { state in
                state.isCancelled = true
                return state.waiting.take()
            }?.resume()
        }

        func untilResumed() async {
            await withCheckedContinuation { continuation in
                let goesOn = self.state.withLock { state in
                    if state.isResumed || state.isCancelled { return true }
                    state.waiting = continuation
                    return false
                }
                if goesOn { continuation.resume() }
            }
        }
    }

    private func fields(_ version: Int) -> Fields {
        var fields: Fields = [
            "Cache-Control": "max-age=60", "Content-Type": "text/plain",
            "Date": HTTPDate.format(self.telling == .weakDate ? self.start : self.clock.now()),
        ]
        switch self.telling {
        case .strongTag: fields.append("ETag", Version.tag(version))
        case .weakTag: fields.append("ETag", "W/\"w\"")
        case .weakDate: fields.append("Last-Modified", HTTPDate.format(self.start))
        case .nothing: break
        }
        return fields
    }

    private func isUnchanged(_ request: Request, _ version: Int) -> Bool {
        let tags = request.fields.string("If-None-Match")
        switch self.telling {
        case .strongTag: return tags?.contains(Version.tag(version)) ?? false
        case .weakTag: return tags?.contains("\"w\"") ?? false
        case .weakDate: return tags == nil && request.fields.contains("If-Modified-Since")
        case .nothing: return false
        }
    }

    /// The range to answer with; nil: the whole.
    private func range(_ request: Request, _ version: Int) -> Range<Int>? {
        let length = Version.length(version)
        guard let set = RangeSet(of: request.fields), set.ranges.count == 1,
            let range = set.resolve(length: UInt64(length))?.first, !range.isEmpty
        else { return nil }
        if let condition = request.fields.string("If-Range") {
            guard self.telling == .strongTag, condition == Version.tag(version) else { return nil }
        }
        return Int(range.lowerBound)..<Int(range.upperBound)
    }

    private func answer(
        _ request: Request, _ version: Int, _ random: SplitMix64,
        _ receiver: any UpstreamReceiver, _ fetch: Fetch
    ) async {
        var random = random
        let facts = UpstreamConnectionFacts(remoteAddress: "192.0.2.1:80")
        func head(_ status: UInt16, _ fields: Fields, _ length: BodyLength) async {
            fetch.willAsk()
            let head = ResponseHead(status: StatusCode(status), fields: fields)
            let demand = receiver.upstream(head: head, bodyLength: length, connection: facts)
            if demand == .pause { await fetch.untilResumed() }
        }
        if random.chance(3) {
            let failure = UpstreamFailure(.connectionTerminated, detail: "no answer")
            return fetch.isCancelled ? () : receiver.upstream(failed: failure)
        }
        var fields = self.fields(version)
        if self.isUnchanged(request, version) {
            await head(304, fields, .none)
            return fetch.isCancelled ? () : receiver.upstream(finished: Fields())
        }
        let length = Version.length(version)
        var sent = 0..<length
        let asked = random.chance(10) ? nil : self.range(request, version)
        if var range = asked {
            if random.chance(20) {
                range = range.lowerBound..<range.lowerBound + (range.count + 1) / 2
            }
            let told = random.chance(10) ? "*" : "\(length)"
            fields.append(
                "Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(told)")
            sent = range
        }
        let isFramed = !random.chance(15)
        if request.method == .head {
            await head(200, fields, .known(UInt64(length)))
            return fetch.isCancelled ? () : receiver.upstream(finished: Fields())
        }
        await head(
            asked == nil ? 200 : 206, fields, isFramed ? .known(UInt64(sent.count)) : .unknown)
        let breaksAt = random.chance(20) ? Int.random(in: sent, using: &random) : sent.upperBound
        var position = sent.lowerBound
        while position < breaksAt, !fetch.isCancelled {
            let end = min(breaksAt, position + Int.random(in: 1...40_000, using: &random))
            fetch.willAsk()
            let piece = Version.bytes(version, position, end - position) ?? ByteBuffer()
            position = end
            if receiver.upstream(piece: piece) == .pause { await fetch.untilResumed() }
            if random.chance(30) { await Task.yield() }
        }
        if fetch.isCancelled { return }
        if position < sent.upperBound {
            let failure = UpstreamFailure(.httpResponseIncomplete, detail: "broken off")
            return receiver.upstream(failed: failure)
        }
        receiver.upstream(finished: Fields())
    }
}
