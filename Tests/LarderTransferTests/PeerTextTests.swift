import Testing

@testable import LarderTransfer

@Suite("Peers as text")
struct PeerTextTests {
    @Test("are those of the request, whatever the one before had")
    func texts() {
        let peer = PeerText()
        for (address, port, text) in [
            ("127.0.0.1", 80, "127.0.0.1:80"), ("127.0.0.1", 80, "127.0.0.1:80"),
            ("127.0.0.1", 81, "127.0.0.1:81"), ("::1", 81, "[::1]:81"), ("", 0, ":0"),
            ("127.0.0.1", 80, "127.0.0.1:80"),
        ] as [(String, Int32, String)] {
            #expect(peer.text(of: address, port: port) == text)
        }
        let fresh = PeerText()
        #expect(fresh.text(of: "", port: 0) == ":0")
    }
}
