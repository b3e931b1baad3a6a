import Foundation

extension URLSessionConfiguration: CustomReflectable {
    /// What decides about the requests of a session, without the secrets among it.
    public var customMirror: Mirror {
        let fields = (self.httpAdditionalHeaders ?? [:]).map { name, value in
            let name = "\(name)"
            return (name, SecretFields.isSecret(name) ? "(hidden)" : "\(value)")
        }
        let proxies = (self.connectionProxyDictionary ?? [:]).map { key, value in
            let key = "\(key)"
            return (key, key.lowercased().contains("password") ? "(hidden)" : "\(value)")
        }
        return Mirror(
            self,
            children: [
                "identifier": self.identifier as Any,
                "requestCachePolicy": self.requestCachePolicy.rawValue,
                "timeoutIntervalForRequest": self.timeoutIntervalForRequest,
                "timeoutIntervalForResource": self.timeoutIntervalForResource,
                "waitsForConnectivity": self.waitsForConnectivity,
                "httpMaximumConnectionsPerHost": self.httpMaximumConnectionsPerHost,
                "httpShouldSetCookies": self.httpShouldSetCookies,
                "httpCookieAcceptPolicy": self.httpCookieAcceptPolicy.rawValue,
                "httpAdditionalHeaders": Dictionary(fields) { first, _ in first },
                "connectionProxyDictionary": Dictionary(proxies) { first, _ in first },
            ], displayStyle: .class)
    }
}
