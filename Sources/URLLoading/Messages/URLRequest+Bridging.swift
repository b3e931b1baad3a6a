public import Foundation

extension URLRequest: _ObjectiveCBridgeable {
    public static func _getObjectiveCType() -> Any.Type { NSURLRequest.self }

    public func _bridgeToObjectiveC() -> NSURLRequest { NSURLRequest(self) }

    public static func _forceBridgeFromObjectiveC(
        _ source: NSURLRequest, result: inout URLRequest?
    ) {
        result = source.asValue
    }

    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSURLRequest, result: inout URLRequest?
    ) -> Bool {
        result = source.asValue
        return true
    }

    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
        source?.asValue ?? URLRequest(address: nil)
    }
}

extension NSURLRequest: _StructTypeBridgeable {
    public typealias _StructType = URLRequest

    public func _bridgeToSwift() -> URLRequest { self.asValue }
}

extension URLRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL, without a password.
    public var description: String { self.url?.withoutPassword.description ?? "url: nil" }

    public var debugDescription: String { self.description }

    /// All properties; what would give credentials and cookies away is left out of the fields.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "url": self.url?.withoutPassword as Any, "cachePolicy": self.cachePolicy.rawValue,
                "timeoutInterval": self.timeoutInterval,
                "mainDocumentURL": self.mainDocumentURL?.withoutPassword as Any,
                "networkServiceType": self.networkServiceType,
                "allowsCellularAccess": self.allowsCellularAccess,
                "httpMethod": self.httpMethod as Any,
                "allHTTPHeaderFields": self.allHTTPHeaderFields.map(SecretFields.hidden) as Any,
                "httpBody": self.httpBody as Any, "httpBodyStream": self.httpBodyStream as Any,
                "httpShouldHandleCookies": self.httpShouldHandleCookies,
                "httpShouldUsePipelining": self.httpShouldUsePipelining,
            ], displayStyle: .struct)
    }
}

/// Fields that no description shows the values of.
enum SecretFields {
    static func isSecret(_ name: String) -> Bool {
        switch name.lowercased() {
        case "authorization", "proxy-authorization", "cookie", "set-cookie": true
        default: false
        }
    }

    static func hidden(_ fields: [String: String]) -> [String: String] {
        var shown = fields
        for name in fields.keys where self.isSecret(name) { shown[name] = "(hidden)" }
        return shown
    }
}
