import Foundation
import LarderHTTP

extension TargetURI {
    /// The target of a URL, without its user information; nil where the engine cannot load it.
    init?(challenged url: URL) {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.user = nil
        parts.password = nil
        parts.fragment = nil
        switch parts.scheme?.lowercased() {
        case "ws": parts.scheme = "http"
        case "wss": parts.scheme = "https"
        default: break
        }
        guard let text = parts.string else { return nil }
        self.init(text: text)
    }
}

extension URLRequest {
    /// Whether it may have content: only a GET or HEAD without any has surely none.
    var mayHaveContent: Bool {
        self.httpBody != nil || (self.httpMethod != "GET" && self.httpMethod != "HEAD")
    }

    /// Whether its answer shows what it bore: then it gets no login but the program's own.
    var isEchoed: Bool { self.httpMethod.map { Method(rawValue: $0).isEchoed } ?? false }

    /// Whether it is the handshake of a WebSocket, which can answer what one request can.
    var isWebSocket: Bool {
        switch self.url?.scheme?.lowercased() {
        case "ws", "wss": true
        default: false
        }
    }

    /// Whether the program says itself who it is.
    var namesAuthorization: Bool {
        self.allHTTPHeaderFields?.keys.contains { FieldName($0).known == .authorization } ?? false
    }
}

extension HTTPURLResponse {
    /// A challenge's response, as delegates see it.
    convenience init?(challenging head: ResponseHead, url: URL) {
        var fields: [String: String] = [:]
        for line in head.fields.lines {
            let name = String(decoding: head.fields.name(of: line), as: UTF8.self)
            let value = String(decoding: head.fields.value(of: line), as: UTF8.self)
            fields[name] = fields[name].map { "\($0), \(value)" } ?? value
        }
        self.init(
            url: url, statusCode: Int(head.status.rawValue), httpVersion: "HTTP/1.1",
            headerFields: fields)
    }
}
