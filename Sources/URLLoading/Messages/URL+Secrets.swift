import Foundation

extension URL {
    /// The URL without a password, for whatever people or files get to see.
    var withoutPassword: URL { self.hiding(user: false) }

    /// The URL without user and password, which are a credential and no part of what is named.
    var withoutUserInformation: URL { self.hiding(user: true) }

    private func hiding(user hidesUser: Bool) -> URL {
        // Most have none, and cost but this look.
        guard self.absoluteString.utf8.contains(UInt8(ascii: "@")),
            var parts = URLComponents(url: self, resolvingAgainstBaseURL: true),
            parts.percentEncodedUser != nil || parts.percentEncodedPassword != nil
        else { return self }
        parts.percentEncodedPassword = nil
        if hidesUser { parts.percentEncodedUser = nil }
        return parts.url ?? self
    }
}
