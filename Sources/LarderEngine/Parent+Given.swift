package import LarderTransfer

/// Parents that a program or its environment names, not a configuration.
extension Parent {
    /// Leads nowhere: what is asked for through it fails with a word about the proxy.
    package static var unusable: Parent { Parent(kind: .http, host: "", port: 0) }

    var isUnusable: Bool { self.host.isEmpty }
}

extension ParentCredential {
    /// One that is kept in memory; connections are told apart by user and password, of which a digest
    /// that means nothing outside of this process is the name.
    package init(user: String, password: String) {
        var hasher = Hasher()
        hasher.combine(user)
        hasher.combine(password)
        let name = "proxy-\(String(UInt(bitPattern: hasher.finalize()), radix: 36))"
        self.init(name: name) { ParentLogin(user: user, password: Array(password.utf8)) }
    }
}
