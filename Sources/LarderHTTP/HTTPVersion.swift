/// The protocol version of a message (RFC 9110 §2.5).
package struct HTTPVersion: Hashable, Comparable, Sendable {
    package var major: UInt8
    package var minor: UInt8

    package init(major: UInt8, minor: UInt8) {
        self.major = major
        self.minor = minor
    }

    package static let http10 = HTTPVersion(major: 1, minor: 0)
    package static let http11 = HTTPVersion(major: 1, minor: 1)
    package static let http2 = HTTPVersion(major: 2, minor: 0)
    package static let http3 = HTTPVersion(major: 3, minor: 0)

    package static func < (a: HTTPVersion, b: HTTPVersion) -> Bool {
        (a.major, a.minor) < (b.major, b.minor)
    }

    /// As `Via` and `received-protocol` write it (RFC 9110 §7.6.3): `1.1`, `2`.
    package var viaName: String {
        switch (self.major, self.minor) {
        case (1, 1): "1.1"
        case (1, 0): "1.0"
        case (2..., _): "\(self.major)"
        default: "\(self.major).\(self.minor)"
        }
    }
}
