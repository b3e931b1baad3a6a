import Testing

@testable import LarderCredentials

@Suite("A secret")
struct SecretTests {
    @Test("is equal by its octets, and found by them")
    func equality() {
        #expect(Secret("abc") == Secret([0x61, 0x62, 0x63]))
        #expect(Secret("abc") != Secret("abd"))
        #expect(Secret("abc") != Secret("ab"))
        #expect(Secret("") == Secret([] as [UInt8]))
        #expect(Set([Secret("a"), Secret("a"), Secret("b")]).count == 2)
    }

    @Test("lends its octets, and gives them out as they came")
    func octets() {
        let secret = Secret("geheim")
        #expect(secret.revealed == Array("geheim".utf8))
        #expect(secret.withBytes { $0.count } == 6)
        #expect(secret.withBytes { $0[0] } == UInt8(ascii: "g"))
        #expect(Secret("").isEmpty && !secret.isEmpty)
    }

    @Test("is shown by no description, mirror or dump")
    func descriptions() {
        var text = "\(Secret("geheim"))" + String(reflecting: Secret("geheim"))
        dump(Secret("geheim"), to: &text)
        #expect(!text.contains("geheim"))
        #expect(Mirror(reflecting: Secret("geheim")).children.isEmpty)
    }

    @Test("is cleared where it lay")
    func clearing() {
        let octets = SecretBytes(Array("geheim".utf8).span)
        octets.clear()
        #expect(octets.withBytes { bytes in bytes.indices.allSatisfy { bytes[$0] == 0 } })
    }
}
