import LarderHTTP
import Testing

@Suite("What a session seals in a request")
struct SealedFieldsTests {
    private static func sealed() -> SealedFields {
        SealedFields(
            [("Cookie", Array("a=5ecret".utf8)), ("Cookie", Array("b=5ecret".utf8))],
            computed: ["Authorization"], client: ["Cookie": "own=5ecret"],
            permits: { _, uri in uri.host == "may.example" })
    }

    @Test("takes the digests out and the lines in, and touches no other field")
    func unsealing() {
        let shown: Fields = [
            "Accept": "x/y", "cookie": "sealed-1", "AUTHORIZATION": "sealed-2", "X-Last": "z",
        ]
        let sent = Self.sealed().unsealing(shown)
        #expect(
            sent == ["Accept": "x/y", "X-Last": "z", "Cookie": "a=5ecret", "Cookie": "b=5ecret"])
        let nothing = SealedFields([], client: Fields(), permits: { _, _ in false })
        #expect(nothing.unsealing(shown) == shown)
    }

    @Test("shows nothing of them, however it is looked at")
    func opaque() {
        var request = Request(uri: TargetURI(scheme: .https, host: "h", pathAndQuery: "/"))
        request.sealed = Self.sealed()
        request.connectionAuthentication = ConnectionAuthentication(
            scheme: .ntlm, user: "u", password: { Array("5ecret".utf8) })
        var shown = "\(request) \(String(reflecting: request))"
        dump(request, to: &shown)
        #expect(!shown.contains("5ecret"))
        #expect(!shown.contains("53, 101, 99, 114, 101, 116"))
        #expect(shown.contains("(sealed)"))
        #expect(request.connectionAuthentication?.revealedPassword == Array("5ecret".utf8))
    }

    @Test("keeps notes up to a bound")
    func notes() {
        let sealed = Self.sealed()
        for number in 0..<1000 { sealed.note("\(number)") }
        #expect(sealed.noted.prefix(2) == ["0", "1"])
        #expect(sealed.noted.count < 100)
    }
}
