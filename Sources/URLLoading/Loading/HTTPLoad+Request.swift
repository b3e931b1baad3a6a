import Foundation
import LarderCredentials
import LarderHTTP

/// A program's request, as the engine takes it.
extension LoadOrder {
    /// Throws where it cannot be sent.
    ///
    /// - Parameter rules: of its session.
    func engineRequest(_ rules: LoadingRules) throws(URLError) -> Request {
        guard let url = self.request.url else { throw URLError(.badURL) }
        let uri = try TargetURI(loading: url)
        let method = try Self.method(self.request.httpMethod)
        if uri.scheme == .ftp, method != .get || self.body != nil {
            throw URLError(.unsupportedURL)
        }
        // What a GET with content means nobody knows (RFC 9110 §9.3.1); such are refused.
        if method == .get, self.body != nil, self.body?.length != 0 {
            throw URLError(.dataLengthExceedsMaximum)
        }
        var request = Request(method: method, uri: uri)
        if uri.scheme == .ftp {
            request.transfer.reportsFTPRefusals = true
            // Nothing of it is stored, and servers exist that leave the question unanswered.
            request.transfer.asksFTPDate = false
        } else {
            let own = self.request.allHTTPHeaderFields
            request.fields = rules.fields.completing(own)
            request.bodyLength = self.bodyLength(own)
            self.addContentType(to: &request)
            self.authorize(&request)
            if rules.handlesCookies {
                request.cookies = RequestCookies(self.request, task: self.task)
            }
            request.transfer.acceptsBareLF = true
            request.transfer.decodesContent = !request.fields.contains(FieldName(.range))
        }
        if self.request.isTimeoutSet {
            request.transfer.idleTimeout = Duration(interval: self.request.timeoutInterval)
        }
        request.transfer.priority = min(1, max(0, self.task.priority))
        request.transfer.receivesProxyChallenges = true
        request.transfer.trafficClass = rules.trafficClass(for: self.request)
        return request
    }

    private static func method(_ name: String?) throws(URLError) -> Method {
        guard let name, !name.isEmpty, name != "GET" else { return .get }
        guard name.utf8.allSatisfy(ASCII.isToken), name != "CONNECT" else {
            throw URLError(.badURL)
        }
        return Method(rawValue: name)
    }

    /// Of content whose length is not known, the program's word counts.
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
        var text = Array(url.absoluteString.utf8)
        if let hash = text.firstIndex(of: UInt8(ascii: "#")) { text.removeSubrange(hash...) }
        let isFTP = text.prefix(4).map(ASCII.lowercased).elementsEqual("ftp:".utf8)
        if !isFTP, let at = Self.endOfUserInfo(text) {
            text.removeSubrange(at.start..<at.end)
        }
        do throws(HeadError) {
            try self.init(absolute: text.span)
        } catch {
            throw URLError(error.reason == .unknownScheme ? .unsupportedURL : .badURL)
        }
        guard !self.host.isEmpty, self.port != 0 else { throw URLError(.badURL) }
    }

    /// Where the user information stands, its `@` included.
    private static func endOfUserInfo(_ text: [UInt8]) -> (start: Int, end: Int)? {
        guard let at = text.firstIndex(of: UInt8(ascii: "@")),
            let colon = text.firstIndex(of: ASCII.colon)
        else { return nil }
        let start = colon + 3
        guard start < at,
            !text[start..<at].contains(where: {
                $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?")
            })
        else { return nil }
        return (start, at + 1)
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
