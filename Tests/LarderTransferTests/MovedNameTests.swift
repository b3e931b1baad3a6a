import Glibc
import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("A name whose addresses take no connection", .timeLimit(.minutes(10)))
struct MovedNameTests {
    /// This machine's own, which leads to an address of its own where somebody has said so; nil: not.
    static let name: String? = {
        var bytes = [CChar](repeating: 0, count: 256)
        guard unsafe gethostname(&bytes, bytes.count - 1) == 0 else { return nil }
        let name = String(
            decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        var found: UnsafeMutablePointer<addrinfo>?
        guard unsafe getaddrinfo(name, nil, nil, &found) == 0 else { return nil }
        unsafe freeaddrinfo(found)
        return NameLookups.isLookedUp(name) ? name : nil
    }()

    @Test(
        "is looked up once more where it was known from before: it may have moved",
        .enabled(if: Self.name != nil))
    func lookedUpAnew() async throws {
        let name = try #require(Self.name)
        // Nobody else gets its port, and nobody listens there.
        let closed = try ReservedPort()
        let request = Request(
            uri: TargetURI(scheme: .http, host: name, port: closed.port, pathAndQuery: "/"))
        try await withUpstream { upstream in
            // Sockets that were opened for each: one for each address, or that twice.
            var opened: [UInt64] = []
            for _ in 0..<2 {
                let before = upstream.statistics().connectionsOpened
                let record = await upstream.answer(to: request)
                #expect(record.failure?.party != .larder, "\(record.failure?.detail ?? "")")
                #expect(record.failure?.cause == .cannotConnect)
                opened.append(upstream.statistics().connectionsOpened - before)
            }
            #expect(opened[0] > 0)
            #expect(opened[1] == 2 * opened[0])
        }
    }
}
