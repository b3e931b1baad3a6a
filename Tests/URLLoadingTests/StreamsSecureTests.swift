import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

/// A server of TLS that gives each line back turned round, behind an origin that speaks in clear
/// until it is asked for TLS.
final class SecureServer: Sendable {
    static let openssl = "/usr/bin/openssl"
    static let isAvailable = FileManager.default.isExecutableFile(atPath: openssl)

    let origin: ScriptedOrigin
    private let program: Program
    private let directory: URL

    init() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("streams-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        self.directory = directory
        let (key, certificate) = (directory.path + "/key.pem", directory.path + "/cert.pem")
        let making = try Program(
            Self.openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj",
                "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            ], environment: [:])
        try await making.output.wait(for: "a certificate") { $0.status == 0 }
        let program = try Program(
            Self.openssl,
            ["s_server", "-accept", "127.0.0.1:0", "-cert", certificate, "-key", key, "-rev"],
            environment: [:])
        self.program = program
        try await program.output.wait(for: "a port") { Self.port($0) != nil }
        let port = try #require(Self.port(program.output.value))
        self.origin = try await ScriptedOrigin.start { connection in
            guard try await connection.wire.read(through: "\n") == "STARTTLS\n" else { return }
            try await connection.send("go\n")
            let server = try await Wire.connect(port: port)
            let back = Task {
                while true {
                    try await server.seen.wait(for: "bytes") { !$0.bytes.isEmpty || $0.isOver }
                    let bytes = server.seen.change { seen in
                        defer { seen.bytes = [] }
                        return seen.bytes
                    }
                    if bytes.isEmpty { break }
                    try await connection.wire.send(bytes)
                }
                try await connection.wire.close()
            }
            while true {
                try await connection.wire.seen.wait(for: "bytes") { !$0.bytes.isEmpty || $0.isOver }
                let bytes = connection.wire.seen.change { seen in
                    defer { seen.bytes = [] }
                    return seen.bytes
                }
                if bytes.isEmpty { break }
                try await server.send(bytes)
            }
            try await server.close()
            back.cancel()
        }
    }

    deinit { try? FileManager.default.removeItem(at: self.directory) }

    private static func port(_ output: Program.Output) -> Int? {
        for line in output.lines where line.hasPrefix("ACCEPT ") {
            return line.split(separator: ":").last.flatMap { Int($0) }
        }
        return nil
    }
}

/// Decides about servers as it is told.
final class TrustingDelegate: RecordingDelegate, URLSessionStreamDelegate, @unchecked Sendable {
    let isTrusting = Event(true)
    let spaces = Event<[URLProtectionSpace]>([])

    override func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenge", session)
        let space = challenge.protectionSpace
        self.spaces.change { $0.append(space) }
        guard self.isTrusting.value, let trust = space.serverTrust else {
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(.useCredential, URLCredential(trust: trust))
    }
}

@Suite(
    "TLS on a stream task (§3.6, §6.1)",
    .enabled(if: SecureServer.isAvailable, "openssl is needed as the server"))
struct StreamsSecureTests {
    private static func session(_ delegate: (any URLSessionDelegate)?) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.connectionProxyDictionary = [:]
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    private static func begin(_ session: URLSession, _ server: SecureServer) async throws
        -> URLSessionStreamTask
    {
        let task = session.streamTask(withHostName: "127.0.0.1", port: server.origin.port)
        task.resume()
        try await task.write(Data("STARTTLS\n".utf8), timeout: 0)
        let (answer, _) = try await task.readData(ofMinLength: 3, maxLength: 3, timeout: 0)
        #expect(answer == Data("go\n".utf8))
        task.startSecureConnection()
        return task
    }

    @Test("begins in the midst of a connection, when the delegate trusts the server")
    func trusted() async throws {
        let server = try await SecureServer()
        let delegate = TrustingDelegate()
        let session = Self.session(delegate)
        let task = try await Self.begin(session, server)
        try await task.write(Data("hello\n".utf8), timeout: 0)
        let (answer, _) = try await task.readData(ofMinLength: 6, maxLength: 6, timeout: 0)
        #expect(answer == Data("olleh\n".utf8))
        let line = Data(repeating: UInt8(ascii: "x"), count: 12_000)
        try await task.write(line + Data("\n".utf8), timeout: 0)
        let (long, _) = try await task.readData(ofMinLength: 12_001, maxLength: 12_001, timeout: 0)
        #expect(long == line + Data("\n".utf8))
        #expect(delegate.messages.value == ["created", "challenge"])
        #expect(delegate.wrongQueue.value == 0)
        let space = try #require(delegate.spaces.value.first)
        #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust)
        #expect(space.host == "127.0.0.1" && space.port == server.origin.port)
        #expect(space.serverTrust?.isTrusted == false)
        task.closeWrite()
        task.cancel()
        try await delegate.completion()
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test("the system's rules decide where nobody does, and what waits fails with the task")
    func untrusted() async throws {
        let server = try await SecureServer()
        let delegate = TrustingDelegate()
        delegate.isTrusting.change { $0 = false }
        let session = Self.session(delegate)
        let task = try await Self.begin(session, server)
        do {
            try await task.write(Data("secret\n".utf8), timeout: 0)
            Issue.record("was written")
        } catch {
            #expect((error as? URLError)?.code == .serverCertificateHasUnknownRoot)
        }
        try await delegate.completion()
        #expect(
            (delegate.errors.value.first as? URLError)?.code == .serverCertificateHasUnknownRoot)
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test("captured streams speak TLS on")
    func captured() async throws {
        let server = try await SecureServer()
        let delegate = SecureStreams()
        let session = Self.session(delegate)
        let task = try await Self.begin(session, server)
        task.captureStreams()
        try await delegate.streams.wait(for: "streams") { $0 != nil }
        let streams = try #require(delegate.streams.value)
        let text = await withCheckedContinuation { (done: CheckedContinuation<String, Never>) in
            Thread.detachNewThread {
                streams.input.open()
                streams.output.open()
                let out = Array("abc\n".utf8)
                _ = unsafe streams.output.write(out, maxLength: out.count)
                var piece = [UInt8](repeating: 0, count: 4)
                var text: [UInt8] = []
                while text.count < 4 {
                    let count = unsafe streams.input.read(&piece, maxLength: 4)
                    guard count > 0 else { break }
                    text += piece[..<count]
                }
                streams.input.close()
                streams.output.close()
                done.resume(returning: String(decoding: text, as: UTF8.self))
            }
        }
        #expect(text == "cba\n")
        session.invalidateAndCancel()
        await server.origin.stop()
    }

    @Test("a server that speaks no TLS, or ends, makes the task fail", arguments: ["junk\n", ""])
    func noTLS(_ answer: String) async throws {
        let origin = try await ScriptedOrigin.start { connection in
            // The handshake's first record.
            _ = try await connection.wire.read(5)
            try await connection.send(answer)
        }
        let session = Self.session(nil)
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        task.startSecureConnection()
        task.resume()
        do {
            try await task.write(Data("x".utf8), timeout: 0)
            Issue.record("was written")
        } catch {
            #expect((error as? URLError)?.code == .secureConnectionFailed)
        }
        session.invalidateAndCancel()
        await origin.stop()
    }
}

/// Trusts every server, and takes the streams.
final class SecureStreams: RecordingDelegate, URLSessionStreamDelegate, @unchecked Sendable {
    let streams = Event<StreamRecorder.Streams?>(nil)

    override func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let trust = challenge.protectionSpace.serverTrust
        completionHandler(.useCredential, trust.map { URLCredential(trust: $0) })
    }

    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask,
        didBecome inputStream: InputStream, outputStream: OutputStream
    ) {
        let streams = StreamRecorder.Streams(input: inputStream, output: outputStream)
        self.streams.change { $0 = streams }
    }
}
