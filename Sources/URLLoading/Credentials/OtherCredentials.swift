import Foundation

/// Credentials that the engine has no use for: client certificates, and logins for protocols, ports or
/// methods of a program's own.
///
/// In memory alone.
struct OtherCredentials {
    private struct Held {
        var byUser: [String: URLCredential] = [:]
        var defaultCredential: URLCredential?
    }

    private var spaces: [URLProtectionSpace: Held] = [:]

    var isEmpty: Bool { self.spaces.isEmpty }

    func logins(for space: URLProtectionSpace) -> [String: URLCredential]? {
        guard let held = self.spaces[space], !held.byUser.isEmpty else { return nil }
        return held.byUser
    }

    var allLogins: [URLProtectionSpace: [String: URLCredential]] {
        self.spaces.compactMapValues { $0.byUser.isEmpty ? nil : $0.byUser }
    }

    func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        self.spaces[space]?.defaultCredential
    }

    mutating func set(
        _ credential: URLCredential, for space: URLProtectionSpace, asDefault: Bool
    ) -> Bool {
        var held = self.spaces[space] ?? Held()
        var hasChanged = false
        if let user = credential.user {
            hasChanged = held.byUser.updateValue(credential, forKey: user) != credential
        }
        if asDefault || held.defaultCredential == nil {
            hasChanged = hasChanged || held.defaultCredential != credential
            held.defaultCredential = credential
        }
        self.spaces[space] = held
        return hasChanged
    }

    mutating func remove(_ credential: URLCredential, for space: URLProtectionSpace) -> Bool {
        guard var held = self.spaces[space] else { return false }
        var hasChanged = false
        if let user = credential.user, held.byUser[user] == credential {
            held.byUser[user] = nil
            hasChanged = true
        }
        if held.defaultCredential == credential {
            held.defaultCredential = nil
            hasChanged = true
        }
        self.put(held, for: space)
        return hasChanged
    }

    mutating func dropDefault(of space: URLProtectionSpace) -> Bool {
        guard var held = self.spaces[space], held.defaultCredential != nil else { return false }
        held.defaultCredential = nil
        self.put(held, for: space)
        return true
    }

    private mutating func put(_ held: Held, for space: URLProtectionSpace) {
        let isEmpty = held.byUser.isEmpty && held.defaultCredential == nil
        self.spaces[space] = isEmpty ? nil : held
    }
}
