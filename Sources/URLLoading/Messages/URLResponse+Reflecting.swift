import Foundation

extension URLResponse: CustomReflectable {
    /// What descriptions show, too: without a password of the URL and the values of cookies.
    public var customMirror: Mirror {
        var children: [(label: String?, value: Any)] = [
            ("url", self.url?.withoutPassword as Any), ("mimeType", self.mimeType as Any),
            ("expectedContentLength", self.expectedContentLength),
            ("textEncodingName", self.textEncodingName as Any),
        ]
        if let http = self as? HTTPURLResponse {
            let fields = http.allHeaderFields as? [String: String] ?? [:]
            children.append(("statusCode", http.statusCode))
            children.append(("allHeaderFields", SecretFields.hidden(fields)))
        }
        return Mirror(self, children: children, displayStyle: .class)
    }
}
