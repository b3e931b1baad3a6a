import Foundation
import LarderCredentials
import LarderHTTP
import LarderSession
import LarderTransfer

/// The opening handshake of a WebSocket (RFC 6455 §4.1): what is asked, and what counts as a yes.
struct WebSocketHandshake: Sendable {
    let uri: TargetURI
    /// The request, as cookies look at it.
    let hop: Hop
    private let key: String
    private let fields: Fields
    private let protocols: [String]

    /// What belongs to the handshake itself, and no program sets.
    private static let own: Set<String> = [
        "connection", "upgrade", "host", "sec-websocket-key", "sec-websocket-version",
        "sec-websocket-extensions", "sec-websocket-accept", "content-length", "accept-encoding",
    ]

    /// Throws where the request is none for a WebSocket.
    ///
    /// - Parameters:
    ///   - cookies: the session's; a program's own storage is asked before this returns.
    ///   - nonce: 16 octets nobody can foresee.
    init(
        _ order: LoadOrder, _ settings: URLSessionConfiguration, cookies: (any HopCookies)?,
        nonce: [UInt8]
    ) throws(URLError) {
        guard let url = order.request.url, let scheme = url.scheme?.lowercased(),
            let uri = TargetURI(challenged: url)
        else { throw URLError(.badURL) }
        guard scheme == "ws" || scheme == "wss" else { throw URLError(.unsupportedURL) }
        self.uri = uri
        self.key = Data(nonce).base64EncodedString()
        var fields = SessionFields(settings.additionalFields)
            .completing(order.request.allHTTPHeaderFields)
        fields.keep { fields, line in
            !Self.own.contains(
                String(decoding: fields.name(of: line), as: UTF8.self).lowercased())
        }
        let hop = Hop(
            method: .get, uri: uri, client: fields,
            cookies: RequestCookies(order.request, task: order.task))
        self.hop = hop
        cookies?.addCookies(to: &fields, for: hop, at: CookieMoment.now)
        switch order.authorization?.forOrigin {
        case .field(let secret):
            fields.set("Authorization", String(decoding: secret.revealed, as: UTF8.self))
        case .connection: throw URLError(.userAuthenticationRequired)
        case .proxied, nil: break
        }
        for line in fields.lines
        where fields.value(of: line).contains(where: { $0 == 13 || $0 == 10 || $0 == 0 }) {
            throw URLError(.badURL)
        }
        self.fields = fields
        self.protocols = fields.values(FieldName("Sec-WebSocket-Protocol"))
            .flatMap { String(decoding: $0, as: UTF8.self).split(separator: ",") }
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }

    /// The request as it goes out.
    var request: Data {
        var text = "GET \(self.uri.pathAndQuery) HTTP/1.1\r\nHost: \(self.uri.authority)\r\n"
        text += "Upgrade: websocket\r\nConnection: Upgrade\r\n"
        text += "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(self.key)\r\n"
        return Data(text.utf8) + self.fields.serialized() + Data("\r\n".utf8)
    }

    /// Whether a response opens the connection; throws where it claims to and does not.
    func opens(_ head: ResponseHead) throws(URLError) -> Bool {
        guard head.status.rawValue == 101 else { return false }
        let connection = head.fields.values(FieldName("Connection"))
            .map { String(decoding: $0, as: UTF8.self).lowercased() }.joined(separator: ",")
        let hasUpgrade = connection.split(separator: ",").contains {
            $0.trimmingCharacters(in: .whitespaces) == "upgrade"
        }
        guard hasUpgrade,
            head.fields.string(FieldName("Upgrade"))?.lowercased() == "websocket",
            head.fields.string(FieldName("Sec-WebSocket-Accept"))
                == WebSocketKey.accept(for: self.key),
            head.fields.string(FieldName("Sec-WebSocket-Extensions")) == nil
        else { throw URLError(.badServerResponse) }
        if let chosen = self.chosenProtocol(head), !self.protocols.contains(chosen) {
            throw URLError(.badServerResponse)
        }
        return true
    }

    /// What the server wants to speak; nil: nothing in particular.
    func chosenProtocol(_ head: ResponseHead) -> String? {
        head.fields.string(FieldName("Sec-WebSocket-Protocol"))
    }

    /// Takes the cookies that a response sets.
    ///
    /// - Parameters:
    ///   - cookies: the session's; nil: it takes none.
    ///   - kept: called when a program's own storage has them, on any thread.
    /// - Returns: false where there is nothing to wait for; `kept` is not called then.
    func takeCookies(
        of head: ResponseHead, into cookies: (any HopCookies)?, kept: @escaping @Sendable () -> Void
    ) -> Bool {
        guard let cookies, head.fields.contains(FieldName(.setCookie)) else { return false }
        // The program sees the lines nevertheless.
        var head = head
        cookies.takeCookies(from: &head, for: self.hop, at: CookieMoment.now)
        return cookies.whenKept(kept)
    }

    /// A redirection to a WebSocket's URL as one to the URL that is asked for it (RFC 6455 §4.1).
    private static func inHTTP(_ head: ResponseHead) -> ResponseHead {
        guard let place = head.fields.string("Location") else { return head }
        var head = head
        for (scheme, plain) in [("ws://", "http://"), ("wss://", "https://")]
        where place.lowercased().hasPrefix(scheme) {
            head.fields.set("Location", plain + place.dropFirst(scheme.count))
        }
        return head
    }

    /// The request that a redirection leads to, as a WebSocket's; nil: it is none that is followed.
    func redirection(_ head: ResponseHead, of request: URLRequest) -> URLRequest? {
        var plain = request
        plain.url = URL(string: self.uri.description)
        guard
            case .follow(var next, _) = Redirect.judge(
                Self.inHTTP(head), to: plain, number: 0, hasContent: false),
            let target = next.url,
            var parts = URLComponents(url: target, resolvingAgainstBaseURL: true)
        else { return nil }
        parts.scheme = parts.scheme?.lowercased() == "https" ? "wss" : "ws"
        next.url = parts.url
        return next
    }
}
