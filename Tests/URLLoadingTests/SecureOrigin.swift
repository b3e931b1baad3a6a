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

    /// It and its key, to be shown to an origin.
    var identity: URLClientIdentity {
        get throws {
            try URLClientIdentity(
                contentsOfPEM: URL(fileURLWithPath: self.certificate),
                key: URL(fileURLWithPath: self.key))
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

    /// One that is valid from one moment to another, as `YYYYMMDDHHMMSSZ`.
    static func dated(
        _ name: String, in directory: URL, from start: String, until end: String,
        by issuer: MadeCertificate
    ) async throws -> MadeCertificate {
        let place = directory.appendingPathComponent("\(name)-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        let made = MadeCertificate(
            certificate: directory.appendingPathComponent("\(name).pem").path,
            key: directory.appendingPathComponent("\(name).key").path)
        let asked = place.appendingPathComponent("asked.pem").path
        try await SecureOrigin.run([
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-subj", "/CN=\(name)", "-addext", "subjectAltName=DNS:localhost", "-keyout", made.key,
            "-out", asked,
        ])
        // Of the commands of OpenSSL 3.0 this one alone sets both dates.
        let conf = place.appendingPathComponent("ca.conf")
        let index = place.appendingPathComponent("index.txt")
        try Data().write(to: index)
        try """
        [ca]
        default_ca = own
        [own]
        database = \(index.path)
        new_certs_dir = \(place.path)
        default_md = sha256
        rand_serial = yes
        copy_extensions = copy
        policy = any
        [any]
        commonName = supplied
        """.write(to: conf, atomically: true, encoding: .utf8)
        try await SecureOrigin.run([
            "ca", "-batch", "-notext", "-config", conf.path, "-cert", issuer.certificate,
            "-keyfile",
            issuer.key, "-startdate", start, "-enddate", end, "-in", asked, "-out",
            made.certificate,
        ])
        return made
    }
}

/// An origin that demands one client's certificate.
struct DemandingOrigin {
    let origin: SecureOrigin
    /// What may be shown to it, and the error of that; nil: none.
    let cases: [(shown: URLClientIdentity?, code: URLError.Code?)]

    /// - Parameter version: an option of `openssl s_server`.
    static func start(_ version: String, in directory: URL) async throws -> DemandingOrigin {
        let made = try await MadeCertificate.make("localhost", in: directory)
        let client = try await MadeCertificate.make("client", in: directory)
        let stranger = try await MadeCertificate.make("stranger", in: directory)
        let origin = try await SecureOrigin.server(
            made, ["-Verify", "1", "-verify_return_error", "-CAfile", client.certificate, version])
        return DemandingOrigin(
            origin: origin,
            cases: [
                (nil, .clientCertificateRequired),
                (try stranger.identity, .clientCertificateRejected), (try client.identity, nil),
            ])
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
        let place = directory.appendingPathComponent("nginx-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
        let conf = place.appendingPathComponent("nginx.conf")
        // nginx takes no port 0: one that was free is perhaps another's by then.
        for isLast in [false, false, false, true] {
            let chosen = if let port { port } else { try await Self.free() }
            try """
            daemon off; master_process off; pid nginx.pid; error_log stderr notice;
            events { worker_connections 64; }
            http {
              access_log off;
              client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f;
              uwsgi_temp_path u; scgi_temp_path s;
              server {
                listen 127.0.0.1:\(chosen) ssl http2;
                ssl_certificate \(certificate.certificate); ssl_certificate_key \(certificate.key);
                \(settings)
                location / { return 200 "$ssl_protocol $server_protocol $ssl_client_s_dn"; }
              }
            }
            """.write(to: conf, atomically: true, encoding: .utf8)
            let program = try Program(
                "/usr/sbin/nginx", ["-p", place.path, "-e", "stderr", "-c", conf.path],
                environment: ["HOME": "/"])
            // It says by which method it waits once it listens.
            try await program.output.wait(for: "nginx to listen") {
                $0.status != nil || $0.errText.contains("event method")
            }
            let output = program.output.value
            if output.status == nil { return SecureOrigin(program, chosen) }
            try #require(!isLast && output.errText.contains("bind()"), "\(output.errText)")
        }
        throw TimedOut(description: "no port for nginx")
    }

    /// One that speaks as `openssl s_server -www` does, and breaks handshakes off for itself.
    static func server(
        _ certificate: MadeCertificate, _ options: [String]
    ) async throws -> SecureOrigin {
        let program = try Program(
            "/usr/bin/openssl",
            [
                "s_server", "-accept", "127.0.0.1:0", "-cert", certificate.certificate,
                "-key", certificate.key, "-www",
            ] + options, environment: ["HOME": "/"])
        try await program.output.wait(for: "openssl to listen") {
            $0.status != nil || $0.lines.contains { $0.hasPrefix("ACCEPT 127.0.0.1:") }
        }
        let output = program.output.value
        let line = output.lines.first { $0.hasPrefix("ACCEPT 127.0.0.1:") }
        let port = try #require(
            line.flatMap { Int($0.dropFirst("ACCEPT 127.0.0.1:".count)) }, "\(output.errText)")
        return SecureOrigin(program, port)
    }

    private static func free() async throws -> Int {
        let origin = try await ScriptedOrigin.start { _ in }
        defer { withExtendedLifetime(origin) {} }
        let free = origin.port
        await origin.stop()
        return free
    }

    private init(_ program: Program, _ port: Int) {
        self.program = program
        self.port = port
    }

    func stop() async throws {
        self.program.signal(SIGKILL)
        try await self.program.ended()
    }

    func url(_ host: String = "localhost") -> String { "https://\(host):\(self.port)/" }
}
