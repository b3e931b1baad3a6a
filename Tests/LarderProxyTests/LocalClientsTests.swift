import LarderHTTP
import Testing

@testable import LarderProxy

@Suite("Access where nobody has said anything about it")
struct LocalClientsTests {
    @Test(
        "is for clients on this machine",
        arguments: [
            ("127.0.0.1", true), ("127.8.9.10", true), ("::1", true), ("::ffff:127.0.0.1", true),
            ("192.0.2.1", false), ("::", false), ("2001:db8::1", false),
        ])
    func loopback(_ text: String, _ isAllowed: Bool) throws {
        let address = try #require(IPAddress(text))
        let query = AccessQuery(
            client: .ip(address, text: text, port: 1), method: .get, host: "a.example", port: 80)
        #expect((LocalClients().judge(query) == .allowed) == isAllowed)
    }

    @Test("and for those that come through a Unix socket")
    func unix() {
        let query = AccessQuery(client: .unix(nil), method: .get, host: "a.example", port: 80)
        #expect(LocalClients().judge(query) == .allowed)
    }
}
