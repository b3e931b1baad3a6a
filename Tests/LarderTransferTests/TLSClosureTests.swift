import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite(
    "the end of a TLS connection (RFC 9112 §9.8)", .timeLimit(.minutes(10)),
    .enabled(
        if: TLSOrigin.isAvailable && TLSFront.isAvailable,
        "nginx, openssl and haproxy are needed as the origin"))
struct TLSClosureTests {
    /// - Parameter isCut: somebody on the way swallows the closure alert.
    private static func fetch(
        _ response: String, isCut: Bool, over versions: TLSVersions
    ) async throws -> Recorder.Record {
        let certified = try await TLSOrigin()
        let origin = try ScriptedOrigin { connection in
            guard connection.readHead() != nil else { return }
            connection.write(response)
            connection.close()
        }
        let front = try TLSFront(of: certified, to: origin.port)
        let port = front.port
        let way = try ScriptedOrigin { $0.relay(to: port, dropsAlerts: isCut) }
        // Ends with the last that has it.
        defer { withExtendedLifetime(front) {} }
        let request = Request(
            uri: TargetURI(
                scheme: .https, host: "localhost", port: way.port, pathAndQuery: "/x"))
        return try await withUpstream({
            $0.certificateFile = certified.certificate
            $0.tlsVersions = versions
            $0.http2 = false
        }) { await $0.answer(to: request) }
    }

    @Test("ends content that has no other end", arguments: [TLSVersion.v12, .v13])
    func whole(_ version: TLSVersion) async throws {
        let record = try await Self.fetch(
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it", isCut: false,
            over: TLSVersions(minimum: version, maximum: version))
        #expect(record.failure == nil)
        #expect(record.text == "all of it")
    }

    @Test("does not without a closure alert: the content may have been cut off")
    func cut() async throws {
        let record = try await Self.fetch(
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf of it", isCut: true,
            over: TLSVersions(minimum: .v12, maximum: .v12))
        #expect(record.failure?.kind == .httpResponseIncomplete)
        // libcurl 8.14 sees it itself, and says what OpenSSL does.
        let detail = record.failure?.detail ?? ""
        #expect(detail.contains("close_notify") || detail.contains("unexpected eof"), "\(detail)")
        #expect(record.text == "half of it")
    }

    @Test(
        "says nothing of content that ends by itself",
        arguments: [
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfour",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
        ])
    func delimited(_ response: String) async throws {
        let record = try await Self.fetch(
            response, isCut: true, over: TLSVersions(minimum: .v12, maximum: .v12))
        #expect(record.failure == nil)
        #expect(record.text == "four")
    }
}
