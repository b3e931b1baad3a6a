import LarderControl
import LarderCredentials
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore
import NIOCore
import Synchronization

/// A request that is to be made with one credential, to see what becomes of it.
struct CredentialTrialOrder: Sendable {
    private let credential: NamedCredential
    private let uri: TargetURI
    private let isInsecure: Bool

    /// - Parameter held: the credential of a name.
    /// - Throws: `ControlRefusal` where there is no such credential, or no such URL.
    init(
        _ reference: CredentialReference, _ url: String, isInsecure: Bool,
        in held: (String) -> NamedCredential?
    ) throws(ControlRefusal) {
        guard case .named(let name) = reference, let found = held(name) else {
            throw ControlRefusal(
                failure: ControlFailure(
                    .notFound,
                    "there is no such credential; \"larder credentials list\" shows which there "
                        + "are"))
        }
        guard let uri = TargetURI(text: url), uri.scheme != .ftp else {
            throw ControlRefusal(
                invalid: "\"\(url)\" is no URL of the web; one begins with https:// or http://")
        }
        // Whatever it is kept for: here it lives as long as the trial.
        self.credential = NamedCredential(
            name: name, kind: found.kind, persistence: .forSession)
        self.uri = uri
        self.isInsecure = isInsecure
    }

    /// Makes the request as a client of the session would, by a session beside it that has the same
    /// way to origins, an empty cache and this credential alone.
    func run(_ open: OpenSession) async -> CredentialTrial {
        guard self.uri.scheme == .https || self.isInsecure else {
            return CredentialTrial(
                verdict: .unanswered, detail: "it does not go over plain http; --insecure lets it")
        }
        var store = CredentialStore(keepsPermanent: false)
        store.set(self.credential)
        let watch = WatchedUpstream(open.upstream, field: self.credential.fieldName)
        var configuration = open.session.configuration
        configuration.injections = InjectionRules([
            InjectionRule(
                name: "larder credentials test",
                hosts: [LarderPolicy.HostPattern("*")], credential: self.credential.name,
                allowsInsecure: self.isInsecure)
        ])
        configuration.followsRedirects = false
        configuration.remembersExchanges = 0
        let session = Session(
            configuration: configuration,
            store: TieredStore(
                memory: MemoryStore(MemoryConfiguration(capacity: .zero)), disk: nil),
            upstream: watch, clock: SystemClock(), timers: DispatchTimers(),
            credentials: SessionCredentials(store, hasher: CryptoHasher()))
        let request = Request(
            method: .get, uri: self.uri, fields: ["Cache-Control": "no-store", "Accept": "*/*"])
        let ending = await TrialClient.ending(of: request, by: session)
        return Self.judge(ending, sent: watch.scheme)
    }

    /// What came of it.
    enum Ending: Sendable, Equatable {
        case answered(UInt16)
        case failed(String)
    }

    /// - Parameter scheme: under which the credential went out; nil where it did not.
    static func judge(_ ending: Ending, sent scheme: String?) -> CredentialTrial {
        switch ending {
        case .failed(let detail):
            CredentialTrial(verdict: .failed, detail: detail)
        case .answered(let status):
            CredentialTrial(
                verdict: Self.verdict(status, wasSent: scheme != nil), status: Int(status),
                scheme: scheme)
        }
    }

    private static func verdict(_ status: UInt16, wasSent: Bool) -> CredentialTrial.Verdict {
        switch (status, wasSent) {
        case (401, true), (403, true): .refused
        case (401, false): .unanswered
        // Some proxy wants a login first: nobody knows what the origin would have said.
        case (407, _): .failed
        case (_, true): .accepted
        case (_, false): .unasked
        }
    }
}

extension NamedCredential {
    fileprivate var fieldName: FieldName {
        guard case .field(let name, _) = self.kind else { return FieldName(.authorization) }
        return FieldName(name)
    }
}

/// A way to origins that notes under which scheme a credential goes out, and nothing else of it.
private final class WatchedUpstream: Upstream {
    private let upstream: any Upstream
    private let field: FieldName
    private let last = Mutex<String?>(nil)

    init(_ upstream: any Upstream, field: FieldName) {
        self.upstream = upstream
        self.field = field
    }

    /// The scheme of the credential in the last request that bore one.
    var scheme: String? { self.last.withLock { $0 } }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        if let scheme = self.scheme(of: request) { self.last.withLock { $0 = scheme } }
        return self.upstream.fetch(request, body: body, receiver: receiver)
    }

    private func scheme(of request: Request) -> String? {
        if let handshake = request.connectionAuthentication { return "\(handshake.scheme)" }
        guard let value = request.fields.first(self.field) else { return nil }
        guard self.field.known == .authorization else { return "field" }
        return AuthenticationScheme(value.prefix { !ASCII.isOWS($0) }).description
    }
}

/// A client that wants to know how its request ended, and none of the content.
private final class TrialClient: ExchangeClient {
    private struct State {
        var ending: CredentialTrialOrder.Ending?
        var waiting: CheckedContinuation<CredentialTrialOrder.Ending, Never>?
    }

    private let state = Mutex(State())

    static func ending(
        of request: Request, by session: Session
    ) async -> CredentialTrialOrder.Ending {
        let client = TrialClient()
        let exchange = session.perform(
            request, body: nil, options: ExchangeOptions(), client: client)
        let ending = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known = client.state.withLock { state in
                    if state.ending == nil { state.waiting = continuation }
                    return state.ending
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            exchange.cancel()
            client.end(.failed("it was broken off"))
        }
        exchange.cancel()
        return ending
    }

    private func end(_ ending: CredentialTrialOrder.Ending) {
        let waiting = self.state.withLock { state in
            guard state.ending == nil else {
                return nil as CheckedContinuation<CredentialTrialOrder.Ending, Never>?
            }
            state.ending = ending
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: ending)
    }

    func exchange(informational head: ResponseHead) {}

    func exchange(answered answer: Answer) {
        if case .source(let body) = answer.body { body.cancel() }
        self.end(.answered(answer.head.status.rawValue))
    }

    func exchange(failed failure: ExchangeFailure) {
        self.end(.failed(failure.detail))
    }
}
