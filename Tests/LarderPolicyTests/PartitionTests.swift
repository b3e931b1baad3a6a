import LarderHTTP
import LarderPolicy
import Testing

@Suite("The partition of a cache that belongs to a principal")
struct PartitionTests {
    private static let principals = [
        "", "user:alice", "user:alice smith", "user:alice%20smith", "user:a\u{0}b", "user:\u{FC}",
        "user:u", "uid:1000", "address:192.0.2.1", "address:2001:db8::1", "user:%", "user:%25",
        "user: GET http://h/", "user:\u{7F}", "user:a\n", "user:#", "user:a?b", "user:a?c",
    ]

    @Test("is a token that no other principal has, and tells its own")
    func names() {
        let partitions = Self.principals.map(CacheKey.partition(of:))
        #expect(Set(partitions).count == Self.principals.count)
        for (principal, partition) in zip(Self.principals, partitions) {
            #expect(partition.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
            #expect(CacheKey.principal(of: partition) == principal)
        }
        #expect(CacheKey.partition(of: "user:alice") == "user:alice")
    }

    @Test("keeps keys and groups apart, whatever a principal is called")
    func keys() throws {
        let uri = try #require(TargetURI(text: "http://h/p"))
        let partitions = Self.principals.map(CacheKey.partition(of:))
        let keys = partitions.map { CacheKey(method: .get, uri: uri, partition: $0) }
        #expect(Set(keys).count == keys.count)
        for (partition, key) in zip(partitions, keys) {
            #expect(key.parts == (partition, "GET", "http://h/p"))
            #expect(key.withoutSearch.parts == (partition, "GET", "http://h/p"))
        }
        #expect(Set(keys.map(\.withoutSearch)).count == keys.count)
        let groups = partitions.map { CacheGroups.name(of: "g", at: uri, partition: $0) }
        #expect(Set(groups).count == groups.count)
    }

    @Test("leaves what is not written as it writes it alone", arguments: ["%", "%2", "%zz", "a%"])
    func foreign(_ text: String) {
        #expect(CacheKey.principal(of: text) == text)
    }

    @Test("does not keep a key from being about a URI, with or without its query")
    func about() throws {
        let uri = try #require(TargetURI(text: "http://h/p?q=1"))
        let other = try #require(TargetURI(text: "http://h/p?q=2"))
        for partition in ["", "user:a", "user:a?b"] {
            let key = CacheKey(method: .get, uri: uri, partition: partition)
            #expect(key.isAbout(uri))
            #expect(!key.isAbout(other))
            #expect(key.withoutSearch.isAbout(uri))
            #expect(key.withoutSearch.isAbout(other))
            #expect(!key.withoutSearch.isAbout(try #require(TargetURI(text: "http://h/"))))
        }
    }
}
