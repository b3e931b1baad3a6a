/// The name by which a client proves to a listener who it is (RFC 7617 §2: without a colon); `*` for
/// whichever.
package struct UserName: SettingText, Hashable {
    package let text: String

    package static var kind: String { "users" }
    package static var expectation: String {
        "a user name of up to 128 characters, without spaces, colons and quotes"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        let fits = text.unicodeScalars.allSatisfy { scalar in
            !scalar.properties.isWhitespace && scalar.value > 0x20 && scalar.value != 0x7F
                && !(0x80...0x9F).contains(scalar.value) && !":\"\\".unicodeScalars.contains(scalar)
        }
        guard fits, (1...128).contains(text.utf8.count) else { throw SettingTextProblem() }
        self.text = text
    }

    package var settingText: String { self.text }

    /// - Parameter user: who the client proved to be; nil where it has not.
    package func matches(_ user: String?) -> Bool {
        user.map { self.isAnyone || self.text == $0 } ?? false
    }

    /// Whether every client is meant that `other` means.
    func holds(_ other: UserName) -> Bool { self.isAnyone || self == other }

    private var isAnyone: Bool { self.text == "*" }
}

/// The number of a user of this machine.
package struct UserID: SettingText, Hashable {
    package let number: UInt32

    package init(_ number: UInt32) {
        self.number = number
    }

    package static var kind: String { "user numbers" }
    package static var expectation: String {
        "the number of a user of this machine, such as 1000 (id -u NAME tells)"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let number = UInt32(text) else {
            throw SettingTextProblem()
        }
        // The kernel has it for nobody at all.
        guard number != .max else { throw SettingTextProblem("stands for no user") }
        self.number = number
    }

    package var settingText: String { String(self.number) }
}

/// What a listener calls the realm for which it asks clients who they are (RFC 9110 §11.5).
package struct Realm: SettingText, Hashable {
    package let text: String

    package static let larder = Realm(known: "larder")

    package static var kind: String { "text" }
    package static var expectation: String {
        "up to 128 printable ASCII characters, without \" and \\"
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        let fits = text.utf8.allSatisfy { byte in
            (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
        }
        guard fits, (1...128).contains(text.utf8.count) else { throw SettingTextProblem() }
        self.text = text
    }

    private init(known text: String) {
        self.text = text
    }

    package var settingText: String { self.text }
}

/// By what a session tells those apart who share it.
package enum PrincipalsWord: String, SettingWord { case none, user, uid, address }
