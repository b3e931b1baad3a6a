import Foundation
import LarderHTTP
import Testing

@testable import URLLoading

@Suite("A credential (§6.4)")
struct CredentialsTypesTests {
    private let credential = URLCredential(
        user: "user", password: "päss", persistence: .permanent)

    @Test("says what it was made of")
    func parts() {
        #expect(self.credential.user == "user")
        #expect(self.credential.password == "päss")
        #expect(self.credential.hasPassword)
        #expect(self.credential.persistence == .permanent)
        #expect(self.credential.identity == nil)
        #expect(self.credential.serverTrust == nil)
        #expect(self.credential.certificates.isEmpty)
        #expect(URLCredential.Persistence.synchronizable.rawValue == 3)
    }

    @Test("is equal in all its parts, and copied as itself")
    func equality() {
        let same = URLCredential(user: "user", password: "päss", persistence: .permanent)
        #expect(same == self.credential)
        #expect(same.hash == self.credential.hash)
        #expect(self.credential.copy() as? URLCredential === self.credential)
        for (user, password, persistence) in [
            ("user", "päss", URLCredential.Persistence.none), ("user", "pass", .permanent),
            ("User", "päss", .permanent),
        ] {
            let other = URLCredential(user: user, password: password, persistence: persistence)
            #expect(other != self.credential)
        }
        #expect(!self.credential.isEqual("user"))
    }

    @Test("survives an archive")
    func coding() throws {
        let data = try NSKeyedArchiver.archivedData(
            withRootObject: self.credential, requiringSecureCoding: true)
        let read = try NSKeyedUnarchiver.unarchivedObject(ofClass: URLCredential.self, from: data)
        #expect(read == self.credential)
        #expect(URLCredential.supportsSecureCoding)
    }

    @Test("shows its password in no description, mirror or dump")
    func secrecy() {
        var dumped = ""
        dump(self.credential, to: &dumped)
        for text in [
            "\(self.credential)", self.credential.debugDescription, dumped,
            String(reflecting: self.credential), "\([self.credential])",
        ] {
            #expect(!text.contains("päss"))
        }
        #expect("\(self.credential)".contains("user"))
    }

    @Test(
        "a URL's user information is a credential, with or without a password",
        arguments: [
            ("http://u:p@h/", "u", "p"), ("http://u%3A:%40@h/", "u:", "@"),
            ("http://u@h/", "u", nil), ("http://u:@h/", "u", ""), ("http://h/", nil, nil),
            ("http://:p@h/", nil, nil),
        ] as [(String, String?, String?)])
    func userInformation(url: String, user: String?, password: String?) throws {
        let credential = URLCredential(userInformationOf: try #require(URL(string: url)))
        #expect(credential?.user == user)
        #expect(credential?.password == password)
    }
}

@Suite("A protection space (§6.5)")
struct CredentialsSpaceTests {
    private static func space(
        _ protocol: String?, _ method: String? = nil, host: String = "example.com", port: Int = 80,
        realm: String? = nil
    ) -> URLProtectionSpace {
        URLProtectionSpace(
            host: host, port: port, protocol: `protocol`, realm: realm,
            authenticationMethod: method)
    }

    @Test("describes itself in a line")
    func description() {
        let text = Self.space("http", "basic").description
        #expect(text.hasPrefix("<URLProtectionSpace 0x"))
        #expect(
            text.hasSuffix(
                ": Host:example.com, Server:http, Auth-Scheme:NSURLAuthenticationMethodDefault, "
                    + "Realm:(null), Port:80, Proxy:NO, Proxy-Type:(null)"))
        let proxy = URLProtectionSpace(
            proxyHost: "p", port: 1, type: NSURLProtectionSpaceHTTPProxy, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodNTLM)
        #expect(
            proxy.description.hasSuffix(
                ": Host:p, Server:(null), Auth-Scheme:NSURLAuthenticationMethodNTLM, Realm:r, "
                    + "Port:1, Proxy:YES, Proxy-Type:http"))
    }

    @Test("is equal in all its parts, the host without regard to case")
    func equality() {
        let space = Self.space("http", NSURLAuthenticationMethodHTTPBasic, realm: "r")
        let same = Self.space(
            "http", NSURLAuthenticationMethodHTTPBasic, host: "EXAMPLE.com", realm: "r")
        #expect(space == same)
        #expect(space.hash == same.hash)
        #expect(space.copy() as? URLProtectionSpace === space)
        for other in [
            Self.space("https", NSURLAuthenticationMethodHTTPBasic, realm: "r"),
            Self.space("http", NSURLAuthenticationMethodHTTPDigest, realm: "r"),
            Self.space("http", NSURLAuthenticationMethodHTTPBasic, realm: "R"),
            Self.space("http", NSURLAuthenticationMethodHTTPBasic),
            Self.space("http", NSURLAuthenticationMethodHTTPBasic, port: 81, realm: "r"),
            URLProtectionSpace(
                proxyHost: "example.com", port: 80, type: "http", realm: "r",
                authenticationMethod: NSURLAuthenticationMethodHTTPBasic),
        ] {
            #expect(space != other)
        }
    }

    @Test("a method of nil is the default one")
    func defaultMethod() {
        #expect(Self.space("http").authenticationMethod == NSURLAuthenticationMethodDefault)
        #expect(Self.space("http") == Self.space("http", NSURLAuthenticationMethodDefault))
    }

    @Test(
        "says whether a listener learns what it can use",
        arguments: [
            ("http", NSURLAuthenticationMethodHTTPBasic, false),
            ("http", NSURLAuthenticationMethodHTTPDigest, false),
            ("http", NSURLAuthenticationMethodDefault, false),
            ("http", NSURLAuthenticationMethodHTMLForm, false),
            ("http", NSURLAuthenticationMethodNTLM, true),
            ("http", NSURLAuthenticationMethodNegotiate, true),
            ("http", NSURLAuthenticationMethodClientCertificate, true),
            ("https", NSURLAuthenticationMethodHTTPBasic, true),
            (NSURLProtectionSpaceHTTPS, NSURLAuthenticationMethodDefault, true),
            ("ftps", NSURLAuthenticationMethodDefault, true),
            (nil, NSURLAuthenticationMethodDefault, false),
        ] as [(String?, String, Bool)])
    func security(protocol: String?, method: String, isSecure: Bool) {
        #expect(Self.space(`protocol`, method).receivesCredentialSecurely == isSecure)
    }

    @Test("survives an archive", arguments: CredentialsStorageTests.spaces)
    func coding(space: URLProtectionSpace) throws {
        let data = try NSKeyedArchiver.archivedData(
            withRootObject: space, requiringSecureCoding: true)
        let read = try NSKeyedUnarchiver.unarchivedObject(
            ofClass: URLProtectionSpace.self, from: data)
        #expect(read == space)
    }
}

@Suite("A challenge (§6.2)")
struct CredentialsChallengeTests {
    @Test("a program's own goes to its sender, and a copy to another one")
    func sender() {
        let first = RecordedSender()
        let credential = URLCredential(user: "u", password: "p", persistence: .none)
        let challenge = URLAuthenticationChallenge(
            protectionSpace: URLProtectionSpace(
                host: "h", port: 1, protocol: "http", realm: nil, authenticationMethod: nil),
            proposedCredential: credential, previousFailureCount: 2, failureResponse: nil,
            error: URLError(.badURL), sender: first)
        challenge.sender?.use(credential, for: challenge)
        #expect(first.calls == ["use"])
        let second = RecordedSender()
        let copy = URLAuthenticationChallenge(authenticationChallenge: challenge, sender: second)
        copy.sender?.cancel(copy)
        #expect(second.calls == ["cancel"])
        #expect(copy.protectionSpace == challenge.protectionSpace)
        #expect(copy.proposedCredential == credential)
        #expect(copy.previousFailureCount == 2)
        #expect((copy.error as? URLError)?.code == .badURL)
    }

    @Test("a session's has a sender to which nothing happens")
    func unheard() throws {
        var script = try ScriptedChallenges()
        let challenge = try #require(script.challenged("Basic realm=\"r\"").challenge)
        let sender = try #require(challenge.sender)
        sender.cancel(challenge)
        sender.continueWithoutCredential(for: challenge)
        sender.performDefaultHandling(for: challenge)
        sender.rejectProtectionSpaceAndContinue(with: challenge)
        #expect(script.use("u").field == basic("u"))
    }
}

private final class RecordedSender: NSObject, URLAuthenticationChallengeSender, @unchecked Sendable
{
    // Invariant: one thread asks it.
    var calls: [String] = []

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        self.calls.append("use")
    }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {
        self.calls.append("continue")
    }
    func cancel(_ challenge: URLAuthenticationChallenge) { self.calls.append("cancel") }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
        self.calls.append("default")
    }
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        self.calls.append("reject")
    }
}
