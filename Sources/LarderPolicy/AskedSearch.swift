package import LarderHTTP

/// The target of a request, to be compared with those of many stored responses.
///
/// Its query is read once, and put in order once for all of them that say the same of queries; theirs are
/// read once for all requests, as long as their heads are in memory. So a look-up costs what its own query
/// does, also where it comes to sixty-four responses with long ones.
package struct AskedSearch {
    private let target: String
    private lazy var parts = Self.split(self.target)
    private lazy var pairs: [SearchParameters.Pair]? =
        SearchParameters.isLong(self.parts.query)
        ? nil : SearchParameters.parse(self.parts.query) { _ in true }
    /// What of them matters to the response that it was compared with last.
    private var significant: (to: NoVarySearch, search: SignificantSearch)?

    /// - Parameter target: path and query.
    package init(_ target: String) {
        self.target = target
    }

    /// Whether a response to `other`, also a path and a query, answers this target, too.
    ///
    /// - Parameter digest: that of `other`, where it is known.
    mutating func isEqual(
        to other: String, by search: NoVarySearch, digest: Int? = nil
    ) -> Bool {
        if other == self.target, other.utf8.elementsEqual(self.target.utf8) { return true }
        guard search != .standard, let own = self.search(by: search) else { return false }
        if let digest, digest != own.digest { return false }
        return SignificantSearch(other, by: search) == own
    }

    /// nil where there are too many parameters to be compared.
    private mutating func search(by search: NoVarySearch) -> SignificantSearch? {
        if let significant, significant.to == search { return significant.search }
        guard let all = self.pairs else { return nil }
        let own = SignificantSearch(
            path: self.parts.path,
            pairs: search.sorted(all.filter { search.matters($0.key) }))
        self.significant = (search, own)
        return own
    }

    fileprivate static func split(_ target: String) -> (path: FieldValue, query: FieldValue) {
        let bytes = Array(target.utf8)[...]
        guard let mark = bytes.firstIndex(of: UInt8(ascii: "?")) else { return (bytes, []) }
        return (bytes[..<mark], bytes[(mark + 1)...])
    }
}

/// What of a target matters, in the order in which it is compared.
private struct SignificantSearch: Equatable {
    let path: FieldValue
    let pairs: [SearchParameters.Pair]
    /// Seeded anew by each process, so that nobody can choose targets that have the same; never 0.
    let digest: Int

    init(path: FieldValue, pairs: [SearchParameters.Pair]) {
        self.path = path
        self.pairs = pairs
        var hasher = Hasher()
        func combine(_ bytes: FieldValue) {
            hasher.combine(bytes.count)
            unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        }
        combine(path)
        for pair in pairs {
            combine(pair.key[...])
            combine(pair.value[...])
        }
        self.digest = hasher.finalize() | 1
    }

    /// nil where there are too many parameters to be compared.
    init?(_ target: String, by search: NoVarySearch) {
        let (path, query) = AskedSearch.split(target)
        guard !SearchParameters.isLong(query) else { return nil }
        self.init(
            path: path,
            pairs: search.sorted(SearchParameters.parse(query, where: search.matters)))
    }

    static func == (a: SignificantSearch, b: SignificantSearch) -> Bool {
        a.digest == b.digest && a.path.elementsEqual(b.path) && a.pairs == b.pairs
    }
}

extension NoVarySearch {
    /// Stands for what of a target matters: the same for targets that are equal; even, and so that of
    /// none, where there are too many parameters to be compared.
    func digest(of target: String) -> Int {
        SignificantSearch(target, by: self)?.digest ?? 2
    }
}

extension StoredHead {
    /// Whether the response, found under the key that leaves the query out, answers this URI.
    package func answers(_ uri: TargetURI) -> Bool {
        var asked = AskedSearch(uri.pathAndQuery)
        return self.answers(&asked)
    }

    /// Whether the response, found under the key that leaves the query out, answers the target of a
    /// search that is made among many.
    package func answers(_ asked: inout AskedSearch) -> Bool {
        guard let own = self.pathAndQuery else { return false }
        return asked.isEqual(to: own, by: self.facts.noVarySearch, digest: self.searchDigest)
    }
}
