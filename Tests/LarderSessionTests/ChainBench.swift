import LarderCredentials
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Synchronization

/// A jar of one cookie a host, which a response sets and the next request bears.
final class OneCookieJar: HopCookies {
    private let jar = Mutex<[String: String]>([:])
    private let taken = Mutex<[String]>([])

    /// The responses it was shown.
    var responses: [String] {
        self.taken.withLock { $0 }
    }

    func put(_ cookie: String, for host: String) { self.jar.withLock { $0[host] = cookie } }

    func showCookies(in fields: inout Fields, for hop: Hop, at now: Timestamp) {
        self.addCookies(to: &fields, for: hop, at: now)
    }

    var showsSetCookie: Bool { false }

    private struct Keeping {
        var isSlow = false
        var waiting: [@Sendable () -> Void] = []
    }

    private let keeping = Mutex(Keeping())

    /// Whoever waits for cookies to be kept waits until `keep`.
    func keepSlowly() { self.keeping.withLock { $0.isSlow = true } }

    func keep() {
        let waiting = self.keeping.withLock { keeping in
            defer { keeping = Keeping() }
            return keeping.waiting
        }
        for body in waiting { body() }
    }

    func whenKept(_ body: @escaping @Sendable () -> Void) -> Bool {
        self.keeping.withLock { keeping in
            if keeping.isSlow { keeping.waiting.append(body) }
            return keeping.isSlow
        }
    }

    func addCookies(to fields: inout Fields, for hop: Hop, at now: Timestamp) {
        guard let cookie = self.jar.withLock({ $0[hop.uri.host] }) else { return }
        let own = fields.string(FieldName(.cookie)).map { $0 + "; " } ?? ""
        fields.set("Cookie", own + cookie)
    }

    func takeCookies(from head: inout ResponseHead, for hop: Hop, at now: Timestamp) {
        let first = hop.first?.host ?? "?"
        self.taken.withLock {
            $0.append("\(hop.number) \(first) \(hop.uri.host) \(head.status)")
        }
        guard let cookie = head.fields.string(FieldName(.setCookie)) else { return }
        self.put(cookie, for: hop.uri.host)
        head.fields.remove(FieldName(.setCookie))
    }
}

/// No hash for any use but to see that the right octets went in (FNV-1a, 64 bits).
struct PlainHasher: DigestHasher {
    func hash(_ octets: [UInt8], by hash: DigestHash) -> [UInt8]? {
        guard hash != .sha512Over256 else { return nil }
        var sum: UInt64 = hash == .md5 ? 0xCBF2_9CE4_8422_2325 : 0x8422_2325_CBF2_9CE4
        for octet in octets { sum = (sum ^ UInt64(octet)) &* 0x100_0000_01B3 }
        return (0..<8).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) }
    }
}

/// Content that comes when the test says so.
final class ScriptedBody: BodySource {
    private struct State: ~Copyable {
        var steps: [BodyStep]
        var wake: (@Sendable () -> Void)?
        var asked = 0
        var attached = 0
        var isCancelled = false
    }

    private let state: Mutex<State>

    init(_ steps: [BodyStep]) {
        self.state = Mutex(State(steps: steps))
    }

    convenience init(_ pieces: String...) {
        self.init(pieces.map { .piece(ByteBuffer(string: $0)) } + [.end(trailers: Fields())])
    }

    var asked: Int { self.state.withLock { $0.asked } }
    var attached: Int { self.state.withLock { $0.attached } }
    var isCancelled: Bool { self.state.withLock { $0.isCancelled } }

    func attach(wake: @escaping @Sendable () -> Void) {
        self.state.withLock { state in
            state.wake = wake
            state.attached += 1
        }
    }

    func next() -> BodyStep {
        self.state.withLock { state in
            state.asked += 1
            guard let first = state.steps.first else { return .pending }
            state.steps.removeFirst()
            return first
        }
    }

    func cancel() { self.state.withLock { $0.isCancelled = true } }

    /// More of it, behind a `pending`.
    func give(_ steps: BodyStep...) {
        self.state.withLock { state in
            state.steps += steps
            return state.wake
        }?()
    }
}

extension BodySource {
    /// What there is now, as text.
    func text() -> (text: String, last: BodyStep) {
        var all = ""
        while true {
            switch self.next() {
            case .piece(let piece): all += String(buffer: piece)
            case let last: return (all, last)
            }
        }
    }
}

/// A session that takes part in its exchanges, with everything around it scripted.
struct ChainBench {
    static let password = "pässword-5ecret"
    static let token = "t0ken-5ecret"

    let upstream = ScriptedUpstream()
    let clock = StandingClock()
    let timers = ManualTimers()
    let jar: OneCookieJar?
    let credentials: SessionCredentials
    let session: Session
    let partition: String

    private static let digest: @Sendable ([UInt8]) -> [UInt8] = { octets in
        PlainHasher().hash(Array("key".utf8) + octets, by: .sha256) ?? []
    }

    init(
        jar: OneCookieJar? = nil, policy: PolicyConfiguration = PolicyConfiguration(),
        injections: [InjectionRule] = [], follows: Bool = false, partition: String = "",
        store: CredentialStore = CredentialStore(keepsPermanent: false),
        common: SessionCredentials? = nil,
        isDigesting: Bool = true, answers: Bool = true, fields: Fields = Fields()
    ) {
        self.jar = jar
        let nonces = Mutex(0)
        self.credentials = SessionCredentials(
            store, common: common, hasher: PlainHasher(),
            nonce: {
                nonces.withLock { count in
                    count += 1
                    return Array("c\(count)".utf8)
                }
            })
        var configuration = SessionConfiguration(policy: policy, window: .kibibytes(16))
        configuration.injections = InjectionRules(injections)
        configuration.followsRedirects = follows
        configuration.answersChallenges = answers
        configuration.additionalFields = fields
        self.session = Session(
            configuration: configuration,
            store: MemoryStore(MemoryConfiguration(capacity: .mebibytes(8))),
            upstream: self.upstream, clock: self.clock, timers: self.timers, partition: partition,
            cookies: jar, credentials: self.credentials,
            digest: isDigesting ? Self.digest : nil)
        self.partition = partition
    }

    /// One credential for Basic or Digest at the origin.
    static func holding(
        _ method: AuthenticationMethod..., realm: String? = "r", scheme: Scheme = .https,
        host: String = "origin.example"
    ) -> CredentialStore {
        var store = CredentialStore(keepsPermanent: false)
        for method in method {
            store.addLogin(method, realm: realm, scheme: scheme, host: host)
        }
        return store
    }

    static func holding(_ named: NamedCredential...) -> CredentialStore {
        var store = CredentialStore(keepsPermanent: false)
        for credential in named { _ = store.set(credential) }
        return store
    }

    static func bearer(_ name: String = "token") -> NamedCredential {
        NamedCredential(name: name, kind: .bearer(Secret(self.token)), persistence: .forSession)
    }

    static func login(_ name: String = "login") -> NamedCredential {
        NamedCredential(
            name: name, kind: .password(user: "alice", password: Secret(self.password)),
            persistence: .forSession)
    }

    @discardableResult
    func perform(
        _ uri: String = "https://origin.example/", method: Method = .get,
        _ fields: Fields = Fields(), body: ScriptedBody? = nil, length: BodyLength = .unknown,
        permits: (@Sendable (Method, TargetURI) -> Bool)? = { _, _ in true }
    ) -> (client: RecordingClient, exchange: any Exchange) {
        let client = RecordingClient()
        let request = Request(
            method: method, uri: TargetURI(text: uri) ?? Self.nowhere, fields: fields,
            bodyLength: body == nil ? .none : length)
        let exchange = self.session.perform(
            request, body: body, options: ExchangeOptions(permits: permits), client: client)
        return (client, exchange)
    }

    private static var nowhere: TargetURI {
        TargetURI(scheme: .https, host: "nowhere.invalid", pathAndQuery: "/")
    }

    /// The value of a field of the request that went out as the nth.
    func sent(_ index: Int, _ name: String) -> String? {
        let fetches = self.upstream.fetches
        return fetches.indices.contains(index)
            ? fetches[index].request.fields.string(FieldName(name)) : nil
    }

    /// Everything that anybody could read of what happened, but for what went to the origin.
    func everythingShown(_ clients: RecordingClient...) -> String {
        var shown = ""
        for client in clients {
            dump(client.answer?.head.fields.pairs, to: &shown)
            dump(client.informational.map(\.fields.pairs), to: &shown)
            dump(client.failure, to: &shown)
        }
        for fetch in self.upstream.fetches {
            dump(fetch.request.sealed, to: &shown)
            dump(fetch.request.connectionAuthentication, to: &shown)
            let uri = fetch.request.uri
            dump(self.session.recentExchanges(for: uri, limit: 9), to: &shown)
            let page = Page()
            let key = CacheKey(method: .get, uri: uri, partition: self.partition)
            self.session.store.lookup(key) { objects in
                for object in objects {
                    page.write("\(object.head)")
                    page.write(String(decoding: object.head.varyingFields.bytes, as: UTF8.self))
                    page.write(String(decoding: object.head.fields.bytes, as: UTF8.self))
                }
            }
            self.session.explain(Request(uri: uri)) { explanation, _ in
                page.write("\(explanation)")
            }
            shown += page.text
        }
        dump(self.session.counters(), to: &shown)
        dump(self.session.openFetches(), to: &shown)
        return shown
    }

    /// The forms in which a secret could show.
    static let secrets: [String] = [
        password, token, "5ecret", "5ecret".utf8.map { String($0) }.joined(separator: ", "),
        Base64Text.of("alice:" + password), "cookie-5ecret",
    ]
}

/// Text from several threads.
private final class Page: Sendable {
    private let lines = Mutex<[String]>([])

    var text: String { self.lines.withLock { $0.joined(separator: "\n") } }

    func write(_ line: String) { self.lines.withLock { $0.append(line) } }
}

/// Base 64 for the tests' own expectations.
enum Base64Text {
    static func of(_ text: String) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var out = ""
        let octets = Array(text.utf8)
        for start in stride(from: 0, to: octets.count, by: 3) {
            let group = octets[start..<min(start + 3, octets.count)]
            var bits = 0
            for index in 0..<3 {
                bits = bits << 8 | (index < group.count ? Int(group[start + index]) : 0)
            }
            for digit in 0..<4 {
                out.append(
                    digit > group.count ? "=" : alphabet[bits >> (18 - 6 * digit) & 63])
            }
        }
        return out
    }
}

extension CredentialStore {
    /// Adds alice's credential for a realm of an origin.
    mutating func addLogin(
        _ method: AuthenticationMethod, realm: String?, scheme: Scheme = .https,
        host: String = "origin.example"
    ) {
        self.set(
            Credential(
                user: "alice", password: Secret(ChainBench.password), persistence: .forSession),
            for: ProtectionSpace(
                party: .server(scheme), host: host, port: scheme.defaultPort, realm: realm,
                method: method))
    }
}
