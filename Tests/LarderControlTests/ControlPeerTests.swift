import Testing

@testable import LarderControl

@Suite("Who may listen on a control socket")
struct ControlPeerTests {
    struct Case: Sendable {
        var peer: UInt32
        var user: UInt32
        var owner: UInt32?
        var isTrusted: Bool
    }

    @Test(
        "is root, the user itself, and for root the user that the directory belongs to",
        arguments: [
            Case(peer: 1000, user: 1000, owner: 1000, isTrusted: true),
            Case(peer: 0, user: 1000, owner: 0, isTrusted: true),
            Case(peer: 1001, user: 1000, owner: 1000, isTrusted: false),
            Case(peer: 1001, user: 1000, owner: 1001, isTrusted: false),
            Case(peer: 995, user: 0, owner: 995, isTrusted: true),
            Case(peer: 1001, user: 0, owner: 995, isTrusted: false),
            Case(peer: 1001, user: 0, owner: 0, isTrusted: false),
            Case(peer: 1001, user: 0, owner: nil, isTrusted: false),
            Case(peer: 0, user: 0, owner: 995, isTrusted: true),
        ])
    func trust(_ c: Case) {
        #expect(
            ControlPeer.isTrusted(c.peer, by: c.user, directoryOwner: c.owner) == c.isTrusted)
    }
}
