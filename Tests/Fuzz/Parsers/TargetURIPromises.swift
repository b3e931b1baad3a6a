import LarderHTTP

/// Target URIs, authorities and references (RFC 3986, RFC 9110 §4.2).
///
/// The first line is read as a URI and an authority, the others as references relative to it.
enum TargetURIPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        let lines = input.textLines
        let first = Array(lines.first ?? [])
        try self.checkAuthority(first)
        let base =
            try self.uri(first) ?? TargetURI(scheme: .http, host: "a", pathAndQuery: "/b/c?d")
        for line in lines.dropFirst() {
            _ = try self.uri(Array(line))
            try self.checkReference(line, base)
        }
    }

    private static func checkAuthority(_ bytes: [UInt8]) throws(Violation) {
        guard let authority = try? Authority(parsing: bytes.span) else { return }
        try hold(authority.port != 0, "port 0")
        let text = authority.host + (authority.port.map { ":\($0)" } ?? "")
        let again = try? Authority(parsing: Array(text.utf8).span)
        try hold(again == authority, "\(text) is read as \(again as Any)")
        try hold(
            authority.host.utf8.allSatisfy { ASCII.lowercased($0) == $0 }, "\(authority.host)")
    }

    private static func uri(_ bytes: [UInt8]) throws(Violation) -> TargetURI? {
        guard let uri = try? TargetURI(absolute: bytes.span) else { return nil }
        try hold(
            uri.pathAndQuery.hasPrefix("/") && !uri.pathAndQuery.contains("#")
                && uri.pathAndQuery.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F },
            "the path \(uri.pathAndQuery)")
        try hold(uri.userInfo == nil || uri.scheme == .ftp, "user information in \(uri.scheme)")
        var plain = uri
        plain.userInfo = nil
        let again = TargetURI(text: uri.description)
        try hold(again == plain, "\(uri) is read as \(again as Any)")
        try hold(uri.hasSameOrigin(as: uri) && bytes.count >= uri.host.utf8.count, "\(uri)")
        return uri
    }

    private static func checkReference(
        _ reference: FieldValue, _ base: TargetURI
    ) throws(Violation) {
        guard let resolved = base.resolving(reference) else { return }
        try hold(
            resolved.pathAndQuery.hasPrefix("/") && !resolved.pathAndQuery.contains("#"),
            "\(Array(reference)) on \(base) is \(resolved)")
        guard resolved.hasSameOrigin(as: base) else { return }
        // A reference without a path keeps that of the base as it is (RFC 3986 §5.2.2).
        let first = reference.first ?? 0x23
        guard first != UInt8(ascii: "?"), first != UInt8(ascii: "#") else { return }
        let segments = resolved.path.split(separator: "/", omittingEmptySubsequences: false)
        try hold(!segments.contains { $0 == "." || $0 == ".." }, "dot segments in \(resolved)")
        // Resolved once, it stays what it is; what begins with two slashes would name a host.
        guard !resolved.pathAndQuery.hasPrefix("//") else { return }
        let again = base.resolving(Array(resolved.pathAndQuery.utf8)[...])
        try hold(again?.pathAndQuery == resolved.pathAndQuery, "\(resolved): \(again as Any)")
    }
}
