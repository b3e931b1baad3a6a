import Foundation
import LarderHTTP
import NIOCore
import Testing

@testable import LarderProcess
@testable import LarderTransfer

/// An nginx with a certificate of its own making on a free port, for the length of a test.
final class TLSOrigin {
    private let program: Program
    private let reserved: ReservedPort
    var port: UInt16 { self.reserved.port }
    let certificate: String
    private let directory: URL

    static let isAvailable = ["/usr/sbin/nginx", "/usr/bin/openssl"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    /// - Parameters:
    ///   - days: for which its certificate is valid; negative: it has expired.
    ///   - protocols: the versions of TLS that it speaks.
    ///   - settings: further lines of nginx's for the server.
    init(
        days: Int = 2, protocols: String = "TLSv1.2 TLSv1.3", settings: String = ""
    ) async throws {
        self.directory = FileManager.default.temporaryDirectory.appending(
            path: "larder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        self.certificate = self.directory.appending(path: "cert.pem").path
        let openssl = try Program(
            "/usr/bin/openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-days", "\(days)", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost", "-keyout",
                directory.appending(path: "key.pem").path, "-out", certificate,
            ], environment: [:])
        let made = try await openssl.ended()
        try #require(made.status == 0, "\(made.errText)")
        // nginx takes no port 0.
        self.reserved = try ReservedPort()
        let conf = directory.appending(path: "nginx.conf")
        try Self.configuration(self.reserved.port, protocols, settings)
            .write(to: conf, atomically: true, encoding: .utf8)
        self.program = try Program(
            "/usr/sbin/nginx", ["-p", directory.path, "-e", "error.log", "-c", conf.path],
            environment: [:])
        try self.waitUntilListening()
    }

    deinit {
        self.program.kill()
        try? FileManager.default.removeItem(at: self.directory)
    }

    private static func configuration(
        _ port: UInt16, _ protocols: String, _ settings: String
    ) -> String {
        """
        daemon off; master_process off; pid nginx.pid; error_log error.log;
        events { worker_connections 512; }
        http {
          access_log off;
          client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f;
          uwsgi_temp_path u; scgi_temp_path s;
          server {
            listen 127.0.0.1:\(port) ssl http2 reuseport;
            ssl_certificate cert.pem; ssl_certificate_key key.pem;
            ssl_protocols \(protocols);
            \(settings)
            location /protocol { return 200 $ssl_protocol; }
            location / { return 200 "$server_protocol $request_method $request_uri $http_host"; }
          }
        }
        """
    }

    /// Connecting is the event that is waited for: connect(2) itself says when it is refused.
    private func waitUntilListening() throws {
        let limit = ContinuousClock.now + .seconds(10)
        while ContinuousClock.now < limit {
            if Self.accepts(self.port) { return }
            try #require(self.program.output.value.status == nil)
            sched_yield()
        }
        Issue.record("nginx does not listen")
    }

    /// Whether somebody listens there: not where the connection's own end got that very port, as the
    /// kernel may choose while it is free, and has met itself.
    static func accepts(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        return unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        } && address.sin_port != port.bigEndian
    }

    /// The certificate and its key, which are a client's as well as a server's.
    var identity: TLSIdentity {
        get throws {
            let certificate = URL(filePath: self.certificate)
            let key = certificate.deletingLastPathComponent().appending(path: "key.pem")
            return TLSIdentity(
                form: .pem, certificate: Array(try Data(contentsOf: certificate)),
                key: Array(try Data(contentsOf: key)))
        }
    }

    func request(
        _ method: LarderHTTP.Method = .get, host: String = "localhost", _ target: String = "/x"
    ) -> Request {
        Request(
            method: method,
            uri: TargetURI(scheme: .https, host: host, port: self.port, pathAndQuery: target))
    }
}

/// A haproxy that takes TLS off what comes and passes it on to a port of this machine.
final class TLSFront {
    private let program: Program
    private let directory: URL
    private let reserved: ReservedPort
    var port: UInt16 { self.reserved.port }

    static let isAvailable = FileManager.default.isExecutableFile(atPath: "/usr/sbin/haproxy")

    /// - Parameter origin: whose certificate it shows.
    init(of origin: TLSOrigin, to target: UInt16) throws {
        self.directory = FileManager.default.temporaryDirectory.appending(
            path: "larder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: self.directory, withIntermediateDirectories: true)
        let certificate = URL(filePath: origin.certificate)
        let key = certificate.deletingLastPathComponent().appending(path: "key.pem")
        let both = self.directory.appending(path: "both.pem")
        try (Data(contentsOf: certificate) + Data(contentsOf: key)).write(to: both)
        // haproxy binds with SO_REUSEPORT by itself.
        self.reserved = try ReservedPort()
        let conf = self.directory.appending(path: "haproxy.cfg")
        try """
        defaults
          mode tcp
          timeout connect 10s
          timeout client 10s
          timeout server 10s
        listen front
          bind 127.0.0.1:\(self.reserved.port) ssl crt \(both.path)
          server back 127.0.0.1:\(target)

        """.write(to: conf, atomically: true, encoding: .utf8)
        self.program = try Program(
            "/usr/sbin/haproxy", ["-db", "-q", "-f", conf.path], environment: [:])
        let limit = ContinuousClock.now + .seconds(10)
        while !TLSOrigin.accepts(self.reserved.port) {
            try #require(self.program.output.value.status == nil && ContinuousClock.now < limit)
            sched_yield()
        }
    }

    deinit {
        self.program.kill()
        try? FileManager.default.removeItem(at: self.directory)
    }
}

@Suite(
    "https origins (RFC 9110 §4.2.2)", .timeLimit(.minutes(10)),
    .enabled(if: TLSOrigin.isAvailable, "nginx and openssl are needed as the origin"))
struct TLSTests {
    @Test("are spoken to in HTTP/2 where they can, over one connection", arguments: [true, false])
    func version(_ http2: Bool) async throws {
        let origin = try await TLSOrigin()
        try await withUpstream({
            $0.certificateFile = origin.certificate
            $0.http2 = http2
        }) { upstream in
            let name = http2 ? "HTTP/2.0" : "HTTP/1.1"
            await withTaskGroup(of: Recorder.Record.self) { group in
                for _ in 0..<20 {
                    let request = origin.request(.get, "/a//b?c=%20")
                    group.addTask { await upstream.answer(to: request) }
                }
                for await record in group {
                    #expect(record.failure == nil)
                    #expect(record.text == "\(name) GET /a//b?c=%20 localhost:\(origin.port)")
                    #expect(record.facts?.version == (http2 ? .http2 : .http11))
                    #expect(record.head?.version == (http2 ? .http2 : .http11))
                }
            }
            if http2 { #expect(upstream.statistics().connectionsOpened <= 2) }
            let post = await upstream.answer(
                to: Request(
                    method: .post, uri: origin.request().uri, bodyLength: .unknown),
                body: ScriptedContent(text: "hello"))
            #expect(post.text.hasPrefix("\(name) POST"))
        }
    }

    @Test(
        "get request heads of any size, as others do at the same time",
        .serialized, arguments: [true, false], [20_000, 63_000, 70_000, 140_000, 990_000])
    func largeHeads(_ http2: Bool, _ size: Int) async throws {
        let origin = try await TLSOrigin(
            settings: """
                large_client_header_buffers 4 2m;
                location /cookie { return 200 "$http_cookie"; }
                """)
        try await withUpstream({
            $0.certificateFile = origin.certificate
            $0.http2 = http2
        }) { upstream in
            // The connection that all of them might share is there.
            #expect(await upstream.answer(to: origin.request()).failure == nil)
            let piece = "abcdefghijklmnopqrstuvw"
            let cookie = String(repeating: piece, count: size / piece.count)
            var large = origin.request(.get, "/cookie")
            large.fields.append("Cookie", Array(cookie.utf8))
            var posted = large
            (posted.method, posted.bodyLength) = (.post, .unknown)
            await withTaskGroup(of: (Bool, Recorder.Record).self) { [large, posted] group in
                for i in 0..<6 {
                    let request = i % 3 == 0 ? large : origin.request()
                    group.addTask { (i % 3 == 0, await upstream.answer(to: request)) }
                }
                group.addTask {
                    let content = ScriptedContent(text: "hello")
                    return (true, await upstream.answer(to: posted, body: content))
                }
                for await (isLarge, record) in group {
                    if isLarge, CurlLibrary.omitsLongFields, size > RequestChecks.longestField {
                        #expect(record.failure?.kind == .requestHeadTooLarge)
                        continue
                    }
                    #expect(record.failure == nil && record.head?.status == .ok)
                    #expect(!isLarge || record.text == cookie)
                }
            }
        }
    }

    @Test(
        "that retire a connection under requests get those over another (RFC 9113 §6.8)",
        .serialized, arguments: [1, 3, 20], [60, 6])
    func retiring(_ requestsOfConnection: Int, _ limit: Int) async throws {
        // nginx ignores the streams behind its GOAWAY.
        let origin = try await TLSOrigin(settings: "keepalive_requests \(requestsOfConnection);")
        try await withUpstream({
            $0.certificateFile = origin.certificate
            $0.connectionsPerHost = limit
        }) { upstream in
            #expect(await upstream.answer(to: origin.request()).failure == nil)
            await withTaskGroup(of: Recorder.Record.self) { group in
                for i in 0..<40 {
                    let request = origin.request(i % 3 == 0 ? .delete : .get, "/\(i)")
                    group.addTask { await upstream.answer(to: request) }
                }
                for await record in group {
                    #expect(record.failure == nil, "\(record.failure?.detail ?? "")")
                    #expect(record.facts?.version == .http2)
                }
            }
        }
    }

    @Test("get no request head that libcurl cannot send whole: it is refused")
    func tooLargeHead() async throws {
        let origin = try await TLSOrigin()
        var request = origin.request()
        request.fields.append("Cookie", [UInt8](repeating: 97, count: 3_000_000))
        let record = try await withUpstream({ $0.certificateFile = origin.certificate }) {
            await $0.answer(to: request)
        }
        #expect(record.failure?.kind == .requestHeadTooLarge)
        #expect(record.failure?.party == .client)
        #expect(record.failure?.detail.hasPrefix("a request head of more than 1 MB") == true)
    }

    @Test("are not held up by others that never finish a handshake")
    func silentOthers() async throws {
        let silent = try (0..<5).map { _ in try ScriptedOrigin { _ = $0.waitForEnd() } }
        let origin = try await TLSOrigin()
        try await withUpstream({
            $0.certificateFile = origin.certificate
            $0.connectionsPerHost = 6
            $0.connectTimeout = .seconds(60)
            $0.queueTimeout = .seconds(30)
        }) { upstream in
            var waiting: [any UpstreamFetch] = []
            for other in silent {
                var request = other.request()
                request.uri = TargetURI(
                    scheme: .https, host: "127.0.0.1", port: other.port, pathAndQuery: "/")
                for _ in 0..<6 {
                    waiting.append(
                        upstream.fetch(request, body: nil, receiver: Recorder()))
                }
            }
            let request = origin.request()
            await withTaskGroup(of: Recorder.Record.self) { group in
                for _ in 0..<10 { group.addTask { await upstream.answer(to: request) } }
                for await record in group {
                    #expect(record.failure == nil && record.facts?.version == .http2)
                }
            }
            for fetch in waiting { fetch.cancel() }
        }
    }

    @Test("leave handles behind that serve any request, when many shared a connection")
    func handles() async throws {
        let origin = try await TLSOrigin()
        let plain = try ScriptedOrigin.echoingTargets()
        try await withUpstream({ $0.certificateFile = origin.certificate }) { upstream in
            for request in [
                origin.request(.get, "/a"), origin.request(.head, "/a"), plain.request(),
                origin.request(.get, "/a"), plain.request(.head),
            ] {
                await withTaskGroup(of: Recorder.Record.self) { group in
                    for _ in 0..<20 { group.addTask { await upstream.answer(to: request) } }
                    for await record in group { #expect(record.failure == nil) }
                }
            }
        }
    }

    @Test("are verified: certificate and name")
    func verification() async throws {
        let origin = try await TLSOrigin()
        let unknown = try await withUpstream { await $0.answer(to: origin.request()) }
        #expect(unknown.failure?.kind == .tlsCertificateError)
        let misnamed = try await withUpstream({ $0.certificateFile = origin.certificate }) {
            await $0.answer(to: origin.request(host: "127.0.0.1"))
        }
        #expect(misnamed.failure?.kind == .tlsCertificateError)
        let trusting = try await withUpstream({ $0.verifiesCertificates = false }) {
            await $0.answer(to: origin.request(host: "127.0.0.1"))
        }
        #expect(trusting.head?.status == .ok)
    }

    @Test("that do not speak TLS")
    func plain() async throws {
        let origin = try ScriptedOrigin { connection in
            _ = connection.readLine()
            connection.write("HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()
        }
        let request = Request(
            uri: TargetURI(scheme: .https, host: "127.0.0.1", port: origin.port, pathAndQuery: "/"))
        let record = try await withUpstream({ $0.verifiesCertificates = false }) {
            await $0.answer(to: request)
        }
        #expect(record.failure?.kind == .tlsProtocolError)
    }

    @Test("are spoken to in no version of TLS beyond the bounds")
    func versions() async throws {
        let origin = try await TLSOrigin()
        let request = origin.request(.get, "/protocol")
        for (versions, expected) in [
            (TLSVersions(minimum: .v12, maximum: .v12), "TLSv1.2"),
            (TLSVersions(minimum: .v13), "TLSv1.3"), (TLSVersions(), "TLSv1.3"),
        ] {
            let record = try await withUpstream({
                $0.certificateFile = origin.certificate
                $0.tlsVersions = versions
            }) { await $0.answer(to: request) }
            #expect(record.text == expected)
        }
        let old = try await withUpstream({
            $0.certificateFile = origin.certificate
            $0.tlsVersions = TLSVersions(minimum: .v10, maximum: .v11)
        }) { await $0.answer(to: request) }
        #expect(old.failure?.kind == .tlsProtocolError)
        #expect(old.failure?.detail.hasSuffix("; TLS 1.0 to 1.1 was offered") == true)
        let ancient = try await TLSOrigin(
            protocols: "TLSv1 TLSv1.1", settings: "ssl_ciphers DEFAULT@SECLEVEL=0;")
        let spoken = try await withUpstream({
            $0.certificateFile = ancient.certificate
            $0.tlsVersions = TLSVersions(minimum: .v10)
        }) { await $0.answer(to: ancient.request(.get, "/protocol")) }
        #expect(spoken.text == "TLSv1.1")
        #expect(TLSVersions().text == "TLS 1.2 and newer")
        #expect(TLSVersions(minimum: .v13, maximum: .v13).text == "TLS 1.3 alone")
    }

    @Test("are reached through a parent's tunnel, which hears nothing of the request")
    func tunnel() async throws {
        let origin = try await TLSOrigin()
        let notes = Notes()
        let port = origin.port
        let parent = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                guard field("Proxy-Authorization", in: head) != nil else {
                    connection.respond(
                        "407 No", "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\n")
                    continue
                }
                notes.add(head)
                connection.write("HTTP/1.1 200 OK\r\nX-Parent: 1\r\n\r\n")
                connection.relay(to: port)
                return
            }
        }
        try await withUpstream({
            $0.certificateFile = origin.certificate
            $0.parents = .all(parent.parent(.http, .digest, as: .alice))
        }) { upstream in
            for _ in 0..<2 {
                var request = origin.request(.get, "/a//b")
                request.fields.append("X-Mine", "1")
                let record = await upstream.answer(to: request)
                #expect(record.text == "HTTP/2.0 GET /a//b localhost:\(origin.port)")
                #expect(record.head?.fields.string(FieldName("X-Parent")) == nil)
                #expect(record.violations == [])
            }
        }
        #expect(notes.count == 1)
        let head = try #require(notes.all.first)
        #expect(head.hasPrefix("CONNECT localhost:\(origin.port) HTTP/1.1\r\n"))
        #expect(!head.contains("X-Mine"))
    }

    @Test("as parents: requests go to them in absolute form, inside TLS that is verified")
    func parent() async throws {
        let proxy = try await TLSOrigin()
        let parent = Parent(kind: .https, host: "localhost", port: proxy.port)
        let request = Request(
            uri: TargetURI(scheme: .http, host: "o.example", pathAndQuery: "/x"))
        let record = try await withUpstream({
            $0.certificateFile = proxy.certificate
            $0.parents = .all(parent)
        }) { await $0.answer(to: request) }
        #expect(record.text == "HTTP/1.1 GET /x o.example")
        let distrusted = try await withUpstream({ $0.parents = .all(parent) }) {
            await $0.answer(to: request)
        }
        #expect(distrusted.failure?.kind == .tlsCertificateError)
        #expect(distrusted.failure?.nextHop == "localhost:\(proxy.port)")
    }

    @Test(
        "are reached through a tunnel inside the TLS of an https parent",
        .enabled(if: TLSFront.isAvailable, "haproxy is needed as the parent's front"))
    func tunnelInTLS() async throws {
        let origin = try await TLSOrigin()
        let port = origin.port
        let inner = try ScriptedOrigin { connection in
            guard let head = connection.readHead(), head.hasPrefix("CONNECT ") else { return }
            connection.write("HTTP/1.1 200 OK\r\n\r\n")
            connection.relay(to: port)
        }
        let front = try TLSFront(of: origin, to: inner.port)
        let named = Parent(kind: .https, host: "localhost", port: front.port)
        let misnamed = Parent(kind: .https, host: "127.0.0.1", port: front.port)
        for (parent, host, isParents) in [
            (named, "localhost", nil), (misnamed, "localhost", true), (named, "127.0.0.1", false),
        ] {
            let record = try await withUpstream({
                $0.certificateFile = origin.certificate
                $0.parents = .all(parent)
            }) { await $0.answer(to: origin.request(host: host)) }
            guard let isParents else {
                #expect(record.text == "HTTP/2.0 GET /x localhost:\(origin.port)")
                continue
            }
            #expect(record.failure?.kind == .tlsCertificateError)
            #expect(record.failure?.detail.contains("the parent itself") == isParents)
        }
    }

    @Test(
        "get a request twice at most where none shares a connection, however many have died",
        .enabled(if: TLSFront.isAvailable, "haproxy is needed"))
    func deadConnections() async throws {
        let (idle, dying, allIdle) = (Notes(), Notes(), Gate())
        let inner = try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("GET /dying ") {
                    dying.add(head)
                    return connection.close()
                }
                idle.add(head)
                if idle.count == 3 { allIdle.open() }
                guard allIdle.block() else { return }
                connection.respond("200 OK")
            }
        }
        let origin = try await TLSOrigin()
        let front = try TLSFront(of: origin, to: inner.port)
        func request(_ target: String) -> Request {
            Request(
                uri: TargetURI(
                    scheme: .https, host: "localhost", port: front.port, pathAndQuery: target))
        }
        try await withUpstream({ $0.certificateFile = origin.certificate }) { upstream in
            await withTaskGroup(of: Recorder.Record.self) { group in
                let first = request("/idle")
                for _ in 0..<3 { group.addTask { await upstream.answer(to: first) } }
                for await record in group { #expect(record.failure == nil) }
            }
            let record = await upstream.answer(to: request("/dying"))
            #expect(record.failure?.kind == .connectionTerminated)
            #expect(dying.count == 2)
        }
    }

    @Test(
        "What lies behind the announced content is no answer to anybody",
        .enabled(if: TLSFront.isAvailable, "haproxy is needed"),
        arguments: [5, 15_000, 150_000], [false, true])
    func excess(_ length: Int, _ isHeld: Bool) async throws {
        let written = Gate()
        let inner = try ScriptedOrigin.sendingExcess(behind: length, written)
        let other = try ScriptedOrigin.answering("ok")
        let origin = try await TLSOrigin()
        let front = try TLSFront(of: origin, to: inner.port)
        func request(_ target: String) -> Request {
            Request(
                method: .get,
                uri: TargetURI(
                    scheme: .https, host: "localhost", port: front.port, pathAndQuery: target))
        }
        try await withUpstream({ $0.certificateFile = origin.certificate }) { upstream in
            let recorder = Recorder(pausesAfter: isHeld ? 0 : nil)
            let fetch = upstream.fetch(request("/first"), body: nil, receiver: recorder)
            await recorder.wait { $0.head != nil }
            await written.passed()
            #expect(await upstream.answer(to: other.request()).text == "ok")
            recorder.wantAll()
            fetch.resume()
            #expect(await recorder.end().body.readableBytes == length)
            // The next connection gets the same first answer.
            let second = await upstream.answer(to: request("/second"))
            #expect(second.body.readableBytes == length)
        }
    }
}
