import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

/// A certificate of a test's own making, with its key, as files.
struct MadeCertificate: Sendable {
    let certificate: String
    let key: String

    var der: Data {
        get throws {
            CertificateFixtures.der(try String(contentsOfFile: self.certificate, encoding: .utf8))
        }
    }

    /// - Parameters:
    ///   - issuer: who vouches for it; nil: it does itself.
    ///   - options: further ones of `openssl req`.
    static func make(
        _ name: String, in directory: URL, hosts: String = "DNS:localhost",
        by issuer: MadeCertificate? = nil, _ options: String...
    ) async throws -> MadeCertificate {
        let made = MadeCertificate(
            certificate: directory.appendingPathComponent("\(name).pem").path,
            key: directory.appendingPathComponent("\(name).key").path)
        let signing =
            issuer.map { ["-CA", $0.certificate, "-CAkey", $0.key] } ?? []
        try await SecureOrigin.run(
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-subj", "/CN=\(name)", "-addext", "subjectAltName=\(hosts)", "-keyout",
                made.key, "-out", made.certificate,
            ] + signing + (options.isEmpty ? ["-days", "2"] : options))
        return made
    }
}

/// nginx, or `openssl s_server`, with a certificate on a free port, for the length of a test.
final class SecureOrigin: Sendable {
    private let program: Program
    let port: Int

    static let isAvailable = ["/usr/sbin/nginx", "/usr/bin/openssl"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    static func run(_ arguments: [String]) async throws {
        let program = try Program("/usr/bin/openssl", arguments, environment: ["HOME": "/"])
        let output = try await program.ended()
        try #require(output.status == 0, "\(output.errText)")
    }

    /// - Parameters:
    ///   - settings: further lines of nginx's for the server.
    ///   - port: where another one was before; nil: a free one.
    static func nginx(
        _ certificate: MadeCertificate, in directory: URL, _ settings: String = "",
        port: Int? = nil
    ) async throws -> SecureOrigin {
        let port = try await Self.free(port)
        let place = directory.appendingPathComponent("nginx-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        let conf = place.appendingPathComponent("nginx.conf")
        try """
        daemon off; master_process off; pid nginx.pid; error_log stderr;
        events { worker_connections 64; }
        http {
          access_log off;
          client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f;
          uwsgi_temp_path u; scgi_temp_path s;
          server {
            listen 127.0.0.1:\(port) ssl http2;
            ssl_certificate \(certificate.certificate); ssl_certificate_key \(certificate.key);
            \(settings)
            location / { return 200 "$ssl_protocol $server_protocol $ssl_client_s_dn"; }
          }
        }
        """.write(to: conf, atomically: true, encoding: .utf8)
        return try await SecureOrigin(
            "/usr/sbin/nginx", ["-p", place.path, "-e", "stderr", "-c", conf.path], port)
    }

    /// One that speaks as `openssl s_server -www` does, and breaks handshakes off for itself.
    static func server(
        _ certificate: MadeCertificate, _ options: [String]
    ) async throws -> SecureOrigin {
        let port = try await Self.free(nil)
        return try await SecureOrigin(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate.certificate,
                "-key", certificate.key, "-www", "-quiet",
            ] + options, port)
    }

    /// Neither takes port 0.
    private static func free(_ port: Int?) async throws -> Int {
        if let port { return port }
        let origin = try await ScriptedOrigin.start { _ in }
        defer { withExtendedLifetime(origin) {} }
        let free = origin.port
        await origin.stop()
        return free
    }

    private init(_ path: String, _ arguments: [String], _ port: Int) async throws {
        self.port = port
        self.program = try Program(path, arguments, environment: ["HOME": "/"])
        // That connecting is not refused any more is what is waited for.
        while true {
            if let wire = try? await Wire.connect(port: port) {
                try await wire.close()
                return
            }
            let output = self.program.output.value
            try #require(output.status == nil, "\(output.errText)")
            await Task.yield()
        }
    }

    func stop() async throws {
        self.program.signal(SIGKILL)
        try await self.program.ended()
    }

    func url(_ host: String = "localhost") -> String { "https://\(host):\(self.port)/" }
}
