import Foundation
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore

/// Where the response to a request of a program lies in a store.
struct CacheAddress {
    /// Without its fragment.
    let url: URL
    let key: CacheKey
    /// As far as a choice among variants needs it; its secrets are sealed as sessions seal them, so that
    /// what either stored answers both, and no secret is stored.
    let request: Request
    /// The request with the fields that a session adds, if its configuration names no others.
    let sent: Request

    /// nil where the request has no URL.
    init?(_ request: URLRequest) {
        guard let original = request.url else { return nil }
        let url = Self.withoutFragment(original)
        let method = Method(rawValue: (request.httpMethod ?? "GET").uppercased())
        self.url = url
        let target = Self.target(of: url)
        self.key = Self.key(method, url, target)
        var own = Request(
            method: method,
            uri: target ?? TargetURI(scheme: .http, host: "", pathAndQuery: "/"))
        for (name, value) in request.allHTTPHeaderFields ?? [:] { own.fields.append(name, value) }
        LoadingEngine.sealer.sealClients(&own.fields)
        self.request = own
        own.fields = Self.sessionFields.completing(request.allHTTPHeaderFields)
        LoadingEngine.sealer.sealClients(&own.fields)
        self.sent = own
    }

    private static let sessionFields = SessionFields([:])

    private static func withoutFragment(_ url: URL) -> URL {
        guard url.fragment != nil, let text = url.absoluteString.split(separator: "#").first else {
            return url.absoluteURL
        }
        return URL(string: String(text)) ?? url.absoluteURL
    }

    /// The target of a URL that an engine can load; nil for others.
    ///
    /// User and password are no part of it: an engine sends them as a credential.
    static func target(of url: URL) -> TargetURI? {
        guard let scheme = url.scheme?.lowercased(), ["http", "https", "ftp"].contains(scheme)
        else {
            return nil
        }
        if let target = TargetURI(text: url.absoluteString) { return target }
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.user = nil
        parts.password = nil
        parts.fragment = nil
        return parts.string.flatMap { TargetURI(text: $0) }
    }

    /// HEAD is no GET here: what a program stores for it has no body.
    private static func key(_ method: Method, _ url: URL, _ target: TargetURI?) -> CacheKey {
        guard let target, method != .head else {
            // No URI of an engine's, or nothing that it would look for.
            return CacheKey(
                bytes: Array(" \(method.rawValue) \(url.withoutPassword.absoluteString)".utf8))
        }
        return CacheKey(method: method, uri: target)
    }

    /// Where a response may lie: under the target itself, and where its query does not count.
    var keys: [CacheKey] {
        self.request.method == .get ? [self.key, self.key.withoutSearch] : [self.key]
    }

    /// The response that the request means; nil where there is none.
    ///
    /// As it stands, as a session would send it, and then with whatever another one left to its session.
    /// What no session would be given, as it answers one request alone, a program has stored itself: it
    /// comes last.
    func select(among objects: [StoredObject]) -> StoredObject? {
        let kept = objects.filter {
            $0.head.extent == nil
                && (!$0.key.leavesOutSearch || $0.head.answers(self.request.uri))
        }.sorted { $0.head.responseTime > $1.head.responseTime }
        let whole = kept.filter { $0.head.status != .partialContent }
        let policy = CachedResponses.policy
        for request in [self.request, self.sent] {
            let exact = whole.first {
                !self.leavesSecrets(of: $0.head)
                    && Variance.matches($0.head, request, configuration: policy)
            }
            if let exact { return exact }
        }
        return whole.first {
            Variance.matches($0.head, self.completed(by: $0.head), configuration: policy)
        }
            ?? kept.first {
                $0.head.status == .partialContent
                    || Variance.depends($0.head, onAny: { _ in false })
            }
    }

    /// Whether the response varies by a secret that the request does not name: a session may add one, so
    /// that a variant for none is no better than the others.
    private func leavesSecrets(of head: StoredHead) -> Bool {
        Variance.depends(
            head,
            onAny: { name in
                FieldSealer.isSecret(name.known) && !self.request.fields.contains(name)
            })
    }

    /// The request with the fields that it leaves to the session, as that sent them.
    private func completed(by head: StoredHead) -> Request {
        var completed = self.request
        let sent = head.varyingFields
        for line in sent.lines where !self.request.fields.names(line, of: sent) {
            completed.fields.append(line, of: sent)
        }
        return completed
    }
}
