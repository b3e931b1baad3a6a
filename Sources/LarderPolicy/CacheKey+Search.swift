package import LarderHTTP

extension CacheKey {
    /// What stands in place of the query in a key that leaves it out: a byte that no target URI
    /// holds, so that no request has such a key by itself.
    static let searchMark = UInt8(ascii: "#")

    /// The key for all queries of the same path: where responses with `No-Vary-Search` are stored.
    ///
    /// Itself where it is such a key already.
    package var withoutSearch: CacheKey {
        if self.leavesOutSearch { return self }
        // A principal's name may hold one, too.
        let uri = self.bytes[self.uriStart...]
        let end = uri.firstIndex(of: UInt8(ascii: "?")) ?? uri.endIndex
        var bytes: [UInt8] = []
        bytes.reserveCapacity(end + 1)
        bytes.append(contentsOf: self.bytes[..<end])
        bytes.append(Self.searchMark)
        return CacheKey(bytes: bytes)
    }

    /// Whether responses to several queries may be stored under it.
    package var leavesOutSearch: Bool { self.bytes.last == Self.searchMark }
}

extension Storability {
    /// Where a storable response is stored, and the head to store: a response with `No-Vary-Search`
    /// notes which target it answers, and goes where the query does not count.
    ///
    /// - Parameter lookedUp: the key that the request was looked up by, if it was one: for a GET
    ///   that is where the response goes, unless it leaves out the query.
    package static func place(
        _ head: StoredHead, for request: Request, partition: String = "",
        lookedUp: CacheKey? = nil, configuration: PolicyConfiguration
    ) -> (key: CacheKey, head: StoredHead) {
        let key: CacheKey
        if let lookedUp, request.method == .get, !lookedUp.leavesOutSearch {
            key = lookedUp
            assert(key == self.key(for: request, partition: partition))
        } else {
            key = self.key(for: request, partition: partition)
        }
        guard configuration.honoursNoVarySearch, NoVarySearch(head.fields) != .standard else {
            return (key, head)
        }
        var noted = head
        noted.pathAndQuery = request.uri.pathAndQuery
        return (key.withoutSearch, noted)
    }
}
