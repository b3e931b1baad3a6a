import Foundation
import LarderHTTP
import LarderPolicy
import LarderTransfer
import Testing

@testable import URLLoading

@Suite("What a request becomes")
struct HTTPFieldsTests {
    @Test("languages in the order in which they are preferred, with less weight each (§14)")
    func languages() {
        #expect(AutomaticFields.acceptLanguage(["de-AT", "en"]) == "de-AT, en;q=0.9")
        #expect(AutomaticFields.acceptLanguage([]) == "*")
        #expect(AutomaticFields.acceptLanguage(["d\r\nX: y", "fr"]) == "fr")
        let many = AutomaticFields.acceptLanguage(Array(repeating: "en", count: 99))
        #expect(many.hasSuffix("en;q=0.5"))
    }

    @Test(
        "a URL without its fragment, and without user and password but for ftp",
        arguments: [
            ("http://u:p@Host.test:80/a?b@c#d", "http://host.test/a?b@c"),
            ("https://host.test?x=/@y", "https://host.test/?x=/@y"),
            ("http://[::1]:8080", "http://[::1]:8080/"),
            ("HTTP://host.test/%7Ea", "http://host.test/%7Ea"),
            ("http://host.test#u:p@other.test/", "http://host.test/"),
            ("http://host.test/a:b@c", "http://host.test/a:b@c"),
            ("http://u@host.test?#f", "http://host.test/?"),
        ])
    func target(_ text: String, _ expected: String) throws {
        let uri = try TargetURI(loading: #require(URL(string: text)))
        #expect("\(uri)" == expected)
        #expect(uri.userInfo == nil)
    }

    @Test("an ftp URL with its user and password")
    func ftp() throws {
        let uri = try TargetURI(loading: #require(URL(string: "ftp://u:p@host.test/f")))
        #expect(uri.userInfo == "u:p")
    }

    @Test("nothing that would break a message in two")
    func injection() {
        let fields = SessionFields([:]).completing([
            "A": "1\r\nEvil: 2", "B\r\nEvil": "3", "": "4", "C": "5\nEvil: 6",
        ])
        #expect(!fields.contains(FieldName("Evil")))
        #expect(!String(decoding: fields.serialized(), as: UTF8.self).contains("\nEvil"))
    }

    @Test(
        "times that are no times are no limits",
        arguments: [
            0, -1, .infinity, .nan, .greatestFiniteMagnitude,
        ])
    func nonsense(_ interval: TimeInterval) {
        #expect(Duration(interval: interval) == nil)
    }

    @Test("a time is itself")
    func time() {
        #expect(Duration(interval: 1.5) == .milliseconds(1500))
    }

    @Test("every cache policy is the engine's of the same name")
    func policies() {
        let settings = URLSessionConfiguration.ephemeral
        settings.requestCachePolicy = .returnCacheDataElseLoad
        let rules = LoadingRules(settings)
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        #expect(rules.cachePolicy(for: request) == .returnCacheElseLoad)
        request.cachePolicy = .reloadRevalidatingCacheData
        #expect(rules.cachePolicy(for: request) == .reloadRevalidating)
    }

    @Test(
        "a time without limit is none, and not another one's (§2)",
        arguments: [.infinity, .greatestFiniteMagnitude, 1e12] as [TimeInterval])
    func unlimited(_ interval: TimeInterval) throws {
        let settings = URLSessionConfiguration.ephemeral
        settings.timeoutIntervalForRequest = interval
        let transfer = TransferConfiguration(settings)
        #expect(try #require(transfer.idleTimeout) > .seconds(1_000_000_000))
        #expect(transfer.connectTimeout == .seconds(604_800))
        #expect(Duration.idle(interval) == transfer.idleTimeout)
        #expect(Duration.idle(0.5) == .milliseconds(500))
        for nonsense in [0, -1, .nan, -.infinity] as [TimeInterval] {
            #expect(Duration.idle(nonsense) == nil)
        }
    }

    @Test("a session's limits reach the transfer: connections and versions of TLS (§2)")
    func transfer() {
        let settings = URLSessionConfiguration.ephemeral
        settings.httpMaximumConnectionsPerHost = 0
        settings.tlsMaximumSupportedProtocolVersion = .TLSv12
        let transfer = TransferConfiguration(settings)
        #expect(transfer.connectionsPerHost == 1)
        #expect(transfer.tlsVersions == TLSVersions(minimum: .v12, maximum: .v12))
    }
}
