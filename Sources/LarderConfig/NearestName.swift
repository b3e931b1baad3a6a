/// Finds what a misspelt name was meant to be.
package enum NearestName {
    /// The candidate with the fewest edits to `name`, if they are few enough to be a slip.
    ///
    /// A third of the letters may differ, but at least one and at most four; a swap of neighbours
    /// is one edit.
    package static func of(_ name: String, among candidates: [String]) -> String? {
        let allowed = min(max(name.count / 3, 1), 4)
        var best: (name: String, distance: Int)?
        for candidate in candidates {
            let distance = Self.distance(name, candidate)
            guard distance <= allowed, distance < candidate.count else { continue }
            if best.map({ distance < $0.distance }) ?? true { best = (candidate, distance) }
        }
        return best?.name
    }

    /// Insertions, deletions, replacements and swaps of neighbours that turn one into the other
    /// (the restricted Damerau-Levenshtein distance).
    ///
    /// Case does not count.
    static func distance(_ a: String, _ b: String) -> Int {
        let a = Array(a.lowercased().utf8.prefix(128))
        let b = Array(b.lowercased().utf8.prefix(128))
        var beforeLast: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            row.reserveCapacity(b.count + 1)
            for j in b.indices {
                var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
                    cost = min(cost, beforeLast[j - 1] + 1)
                }
                row.append(cost)
            }
            beforeLast = last
            last = row
        }
        return last[b.count]
    }
}
