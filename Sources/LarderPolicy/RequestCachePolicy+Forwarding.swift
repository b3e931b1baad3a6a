package import LarderHTTP

extension RequestCachePolicy {
    /// The request as it goes to the origin: `reload-ignoring-all` tells the caches on the way, those
    /// of HTTP/1.0 included (RFC 9111 §5.2.1.4, §5.4).
    package func forwarded(_ request: Request) -> Request {
        guard self == .reloadIgnoringAll else { return request }
        var request = request
        if !CacheControl(request.fields).noCache {
            request.fields.append("Cache-Control", "no-cache")
        }
        if !request.fields.members(FieldName(.pragma)).contains(where: { $0.spells("no-cache") }) {
            request.fields.append("Pragma", "no-cache")
        }
        return request
    }

    /// The policy of this name, if it is one; case does not count.
    package init?(named name: String) {
        self.init(rawValue: name.lowercased())
    }

    /// The name that was most likely meant: the one with the fewest edits to `name`, if they are
    /// fewer than half of its letters.
    package static func nearest(to name: String) -> RequestCachePolicy? {
        let name = Array(name.lowercased().utf8.prefix(64))
        let ranked = Self.allCases.map { ($0, self.edits(name, Array($0.rawValue.utf8))) }
        guard let best = ranked.min(by: { $0.1 < $1.1 }), best.1 * 2 < max(name.count, 1) else {
            return nil
        }
        return best.0
    }

    /// Insertions, deletions and replacements that turn one into the other (Levenshtein).
    private static func edits(_ a: [UInt8], _ b: [UInt8]) -> Int {
        var last = Array(0...b.count)
        for (i, byte) in a.enumerated() {
            var row = [i + 1]
            for j in b.indices {
                row.append(min(last[j + 1] + 1, row[j] + 1, last[j] + (byte == b[j] ? 0 : 1)))
            }
            last = row
        }
        return last[b.count]
    }
}
