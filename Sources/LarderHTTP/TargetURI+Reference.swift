extension TargetURI {
    /// The URI that a reference in a field such as `Location` means, relative to this one
    /// (RFC 3986 §5.2); nil where it is malformed or of another scheme than http, https and ftp.
    ///
    /// Dot segments of its path are resolved, the fragment is dropped.
    package func resolving(_ reference: FieldValue) -> TargetURI? {
        guard reference.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        let text = String(decoding: reference.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
        if let colon = text.firstIndex(of: ":"),
            !text[..<colon].contains(where: { "/?".contains($0) })
        {
            guard let scheme = Scheme(rawValue: text[..<colon].lowercased()) else { return nil }
            let rest = text[text.index(after: colon)...]
            guard rest.hasPrefix("//") else { return nil }
            return Self.hierarchical(scheme: scheme, rest.dropFirst(2))
        }
        if text.hasPrefix("//") {
            return Self.hierarchical(scheme: self.scheme, text.dropFirst(2))
        }
        var resolved = self
        if text.isEmpty { return resolved }
        if text.hasPrefix("?") {
            resolved.pathAndQuery = String(self.path) + text
        } else if text.hasPrefix("/") {
            resolved.pathAndQuery = Self.removingDotSegments(text[...])
        } else {
            let directory = self.path.lastIndex(of: "/").map { self.path[...$0] } ?? "/"
            resolved.pathAndQuery = Self.removingDotSegments(directory + text)
        }
        return resolved
    }

    /// What follows `scheme://`.
    private static func hierarchical(scheme: Scheme, _ rest: Substring) -> TargetURI? {
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var authority = rest[..<end]
        if let at = authority.lastIndex(of: "@") {
            // RFC 9110 §4.2.4: userinfo in an http reference is an error; so it never names an
            // ftp origin that Larder stores for, either.
            guard scheme == .ftp else { return nil }
            authority = authority[authority.index(after: at)...]
        }
        var port: UInt16?
        if let colon = authority.lastIndex(of: ":"),
            !authority[colon...].contains("]")
        {
            let digits = authority[authority.index(after: colon)...]
            if !digits.isEmpty {
                guard digits.utf8.allSatisfy(ASCII.isDigit), let number = UInt16(digits) else {
                    return nil
                }
                port = number
            }
            authority = authority[..<colon]
        }
        guard !authority.isEmpty else { return nil }
        var path = rest[end...]
        if !path.hasPrefix("/") { path = "/" + path }
        return TargetURI(
            scheme: scheme, host: authority.lowercased(), port: port,
            pathAndQuery: Self.removingDotSegments(path))
    }

    /// `remove_dot_segments` of RFC 3986 §5.2.4 on a path that begins with `/`; a query is kept.
    private static func removingDotSegments(_ pathAndQuery: Substring) -> String {
        let path = pathAndQuery.prefix { $0 != "?" }
        let query = pathAndQuery[path.endIndex...]
        var output: [Substring] = []
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".":
                if isLast { output.append("") }
            case "..":
                _ = output.popLast()
                if isLast { output.append("") }
            default:
                output.append(segment)
            }
        }
        return "/" + output.joined(separator: "/") + query
    }
}
