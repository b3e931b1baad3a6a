import Glibc

/// Which file a path leads to, however it is spelled.
enum ResolvedPath {
    /// The path with symbolic links followed as far as it exists, and what does not exist yet behind it.
    static func of(_ path: String) -> String {
        var head = path[...]
        var missing: [Substring] = []
        while true {
            if let found = Self.existing(head.isEmpty ? "/" : String(head)) {
                return Self.join(found, missing)
            }
            guard let slash = head.lastIndex(of: "/") else {
                return Self.join("/", [head] + missing)
            }
            missing.insert(head[head.index(after: slash)...], at: 0)
            head = head[..<slash]
        }
    }

    /// The path as it is spelled, without what does not matter: links stay, whatever they lead to.
    ///
    /// `..` behind a link is above what that leads to, as everywhere.
    static func unfollowed(_ path: String) -> String {
        var spelled = "/"
        for part in path.split(separator: "/") where part != "." {
            guard part == ".." else {
                spelled = Self.join(spelled, [part])
                continue
            }
            let above = Self.parent(spelled)
            let real = Self.parent(Self.of(spelled))
            spelled = Self.of(above) == real ? above : real
        }
        return spelled
    }

    private static func parent(_ path: String) -> String { Self.join(path, [".."]) }

    /// realpath(3); nil where there is nothing, or nothing that we may see.
    private static func existing(_ path: String) -> String? {
        guard let found = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(found) }
        return unsafe String(cString: found)
    }

    private static func join(_ path: String, _ missing: [Substring]) -> String {
        var parts = path.split(separator: "/")
        for part in missing where !part.isEmpty && part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }
}
