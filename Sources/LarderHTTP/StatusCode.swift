/// A status code: any three digits from 100 to 999 (RFC 9110 §15 defines up to 599; what lies
/// beyond is relayed and treated as its class, or as 5xx).
package struct StatusCode: Hashable, Sendable, RawRepresentable, Codable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    package init(_ code: UInt16) {
        self.rawValue = code
    }

    // Open to other modules, as a method's.
    @inlinable
    package static func == (a: StatusCode, b: StatusCode) -> Bool { a.rawValue == b.rawValue }

    package var isInformational: Bool { self.rawValue < 200 }
    package var isSuccessful: Bool { (200..<300).contains(self.rawValue) }
    package var isRedirection: Bool { (300..<400).contains(self.rawValue) }
    package var isClientError: Bool { (400..<500).contains(self.rawValue) }
    package var isServerError: Bool { self.rawValue >= 500 }

    package static let ok = StatusCode(200)
    package static let noContent = StatusCode(204)
    package static let partialContent = StatusCode(206)
    package static let notModified = StatusCode(304)
    package static let unauthorized = StatusCode(401)
    package static let preconditionFailed = StatusCode(412)
    package static let rangeNotSatisfiable = StatusCode(416)
    package static let upgradeRequired = StatusCode(426)
    package static let badGateway = StatusCode(502)
    package static let serviceUnavailable = StatusCode(503)
    package static let gatewayTimeout = StatusCode(504)

    /// Whether a response with this code never has content, whatever its fields say (RFC 9112 §6.3).
    package var forbidsContent: Bool {
        self.isInformational || self.rawValue == 204 || self.rawValue == 304
    }
}

extension StatusCode: CustomStringConvertible {
    package var description: String { String(self.rawValue) }
}
