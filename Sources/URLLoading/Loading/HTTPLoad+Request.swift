import Foundation
import LarderCredentials
import LarderHTTP

/// A program's request, as the engine takes it.
extension LoadOrder {
    /// Throws where it cannot be sent.
    ///
    /// - Parameters:
    ///   - rules: of its session.
    ///   - uri: what its URL says.
    ///   - observer: of the transfer.
    func engineRequest(
        _ rules: LoadingRules, uri: TargetURI, observer: any TransferObserver
    ) throws(URLError) -> Request {
        let method = try Self.method(self.request.httpMethod)
        if uri.scheme == .ftp, method != .get || self.body != nil {
            throw URLError(.unsupportedURL)
        }
        // What a GET with content means nobody knows (RFC 9110 §9.3.1); such are refused.
        if method == .get, self.body != nil, self.body?.length != 0 {
            throw URLError(.dataLengthExceedsMaximum)
        }
        var options = self.options(rules)
        guard uri.scheme != .ftp else {
            options.reportsFTPRefusals = true
            // Nothing of it is stored, and servers exist that leave the question unanswered.
            options.asksFTPDate = false
            return Request(
                method: method, uri: uri, fields: Fields(), bodyLength: .none, transfer: options,
                observer: observer, cookies: nil)
        }
        let own = self.request.allHTTPHeaderFields
        let fields = rules.fields.completing(own)
        options.acceptsBareLF = true
        options.decodesContent = !fields.contains(FieldName(.range))
        var request = Request(
            method: method, uri: uri, fields: fields, bodyLength: self.bodyLength(own),
            transfer: options, observer: observer,
            cookies: rules.handlesCookies ? RequestCookies(self.request, task: self.task) : nil)
        self.addContentType(to: &request)
        self.authorize(&request)
        return request
    }

    /// What it wants of the upstream, whatever the scheme.
    private func options(_ rules: LoadingRules) -> TransferOptions {
        var options = TransferOptions()
        if self.request.isTimeoutSet {
            options.idleTimeout = .idle(self.request.timeoutInterval)
        }
        options.priority = min(1, max(0, self.task.priority))
        options.receivesProxyChallenges = true
        options.trafficClass = rules.trafficClass(for: self.request)
        return options
    }

    private static func method(_ name: String?) throws(URLError) -> Method {
        guard let name, !name.isEmpty, name != "GET" else { return .get }
        guard name.utf8.allSatisfy(ASCII.isToken), name != "CONNECT" else {
            throw URLError(.badURL)
        }
        return Method(rawValue: name)
    }

    /// The length of the content; where that is not known, the program's word counts.
    private func bodyLength(_ own: [String: String]?) -> BodyLength {
        guard let body = self.body else { return .none }
        if let length = body.length { return .known(UInt64(max(0, length))) }
        for (name, value) in own ?? [:] where FieldName(name).known == .contentLength {
            if let length = UInt64(value.trimmingCharacters(in: .whitespaces)) {
                return .known(length)
            }
        }
        return .unknown
    }

    private func addContentType(to request: inout Request) {
        guard request.method == .post, self.body != nil,
            !request.fields.contains(FieldName(.contentType))
        else { return }
        request.fields.append("Content-Type", "application/x-www-form-urlencoded")
    }

    private func authorize(_ request: inout Request) {
        switch self.authorization?.forOrigin {
        case nil, .proxied: return
        case .field(let value):
            request.fields.remove(FieldName(.authorization))
            request.fields.append("Authorization", value.revealed)
        case .connection(let handshake):
            request.fields.remove(FieldName(.authorization))
            request.connectionAuthentication = handshake
        }
        request.isAuthorized = true
    }
}

extension TargetURI {
    /// A URL as the engine takes it: without fragment, and for http without user and password, which
    /// are a credential and no part of the target.
    init(loading url: URL) throws(URLError) {
        try self.init(loading: url.absoluteString)
    }

    /// The same of a URL's text.
    init(loading text: String) throws(URLError) {
        let span = text.utf8.span
        let parts = LoadedParts(span)
        do throws(HeadError) {
            if let userInfo = parts.userInfo {
                var rest = Array(text.utf8.prefix(parts.end))
                rest.removeSubrange(userInfo)
                try self.init(absolute: rest.span)
            } else {
                try self.init(absolute: span.extracting(0..<parts.end))
            }
        } catch {
            throw URLError(error.reason == .unknownScheme ? .unsupportedURL : .badURL)
        }
        guard !self.host.isEmpty, self.port != 0 else { throw URLError(.badURL) }
    }
}

/// What of a URL's text is not for the engine.
private struct LoadedParts {
    /// Before the fragment.
    private(set) var end: Int
    /// Where the user information of an http or https URL lies, its `@` included; nil: there is
    /// none.
    private(set) var userInfo: Range<Int>?

    init(_ text: Span<UInt8>) {
        var (colon, at, slash): (Int?, Int?, Int?)
        self.end = text.count
        guard Self.mayHaveAny(text) else { return }
        for i in text.indices {
            switch text[i] {
            case UInt8(ascii: "#"):
                self.end = i
            case ASCII.colon where colon == nil:
                colon = i
                continue
            case UInt8(ascii: "@") where at == nil && slash == nil:
                at = i
                continue
            // Behind the two that begin the authority.
            case UInt8(ascii: "/"), UInt8(ascii: "?"):
                if let colon, i >= colon + 3, slash == nil { slash = i }
                continue
            default:
                continue
            }
            break
        }
        guard let colon, let at, colon + 3 < at, !Self.isFTP(text, colon) else { return }
        self.userInfo = colon + 3..<at + 1
    }

    /// Whether there is any `#` or `@`: in few URLs there is, and so much is quickly seen.
    private static func mayHaveAny(_ text: Span<UInt8>) -> Bool {
        text.firstIndex(of: UInt8(ascii: "#"), in: text.indices) != nil
            || text.firstIndex(of: UInt8(ascii: "@"), in: text.indices) != nil
    }

    private static func isFTP(_ text: Span<UInt8>, _ colon: Int) -> Bool {
        colon == 3 && text[0] | 0x20 == UInt8(ascii: "f") && text[1] | 0x20 == UInt8(ascii: "t")
            && text[2] | 0x20 == UInt8(ascii: "p")
    }
}

extension ProxyAuthorization {
    /// A login as the upstream gives it; nil for a method that is none of a proxy's.
    convenience init?(_ login: ProxyLogin) {
        guard let scheme = Scheme(rawValue: login.method.rawValue) else { return nil }
        let password = login.password
        self.init(scheme: scheme, user: login.user) { password.revealed }
    }
}
