import LarderHTTP

/// An authentication scheme: a token, compared without regard to case (RFC 9110 §11.1).
package struct AuthenticationScheme: Hashable, Sendable {
    /// The name in lower case.
    package let lowercased: String

    package init(_ name: some Sequence<UInt8>) {
        self.lowercased = String(decoding: name.map(ASCII.lowercased), as: UTF8.self)
    }

    package init(_ name: String) {
        self.init(name.utf8)
    }

    package static let negotiate = AuthenticationScheme("negotiate")
    package static let ntlm = AuthenticationScheme("ntlm")
    package static let digest = AuthenticationScheme("digest")
    package static let basic = AuthenticationScheme("basic")
    package static let bearer = AuthenticationScheme("bearer")

    /// The schemes that a user name and a password answer, strongest first.
    package static let byStrength: [AuthenticationScheme] = [.negotiate, .ntlm, .digest, .basic]
}

extension AuthenticationScheme: CustomStringConvertible {
    package var description: String { self.lowercased }
}
