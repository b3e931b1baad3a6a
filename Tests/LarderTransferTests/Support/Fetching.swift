import Foundation
import LarderHTTP
import Synchronization
import Testing

@testable import LarderTransfer

/// Runs a test with an upstream, which has ended when this returns.
func withUpstream<R>(
    _ change: (inout TransferConfiguration) -> Void = { _ in },
    _ body: (CurlUpstream) async throws -> R
) async throws -> R {
    var configuration = TransferConfiguration()
    change(&configuration)
    let upstream = try CurlUpstream(configuration)
    let result = try await body(upstream)
    let ended = Gate()
    upstream.shutdown { ended.open() }
    await ended.passed()
    return result
}

extension CurlUpstream {
    /// One that runs on the threads that all such share.
    static func sharing(
        _ change: (inout TransferConfiguration) -> Void = { _ in }
    ) throws -> CurlUpstream {
        var configuration = TransferConfiguration()
        configuration.sharesThreads = true
        change(&configuration)
        return try CurlUpstream(configuration)
    }

    /// Fetches and waits for the end.
    func answer(
        to request: Request, body: (any BodySource)? = nil
    ) async -> Recorder.Record {
        let recorder = Recorder()
        let fetch = self.fetch(request, body: body, receiver: recorder)
        defer { _ = fetch }
        return await recorder.end()
    }
}

extension CurlUpstream {
    /// Returns when what has the limits of this upstream would have run into them.
    ///
    /// Exchanges that do so are the clock.
    func letTimesPass() async throws {
        let silent = try ScriptedOrigin { _ = $0.waitForEnd() }
        for _ in 0..<2 {
            let other = await self.answer(to: silent.request())
            #expect(other.failure?.kind == .httpResponseTimeout)
        }
    }
}

extension ScriptedOrigin {
    /// Answers each request with the number of its connection and the target it names.
    static func echoingTargets() throws -> ScriptedOrigin {
        try ScriptedOrigin { connection in
            while let head = connection.readHead() {
                let target = head.split(separator: " ").dropFirst().first ?? ""
                connection.respond("200 OK", "", "\(connection.index) \(target)")
            }
        }
    }

    func request(
        _ method: Method = .get, _ target: String = "/", fields: Fields = Fields(),
        length: BodyLength = .none, expects: Bool = false
    ) -> Request {
        Request(
            method: method,
            uri: TargetURI(
                scheme: .http, host: "127.0.0.1", port: self.port, pathAndQuery: target),
            fields: fields, bodyLength: length, expectsContinue: expects)
    }
}

/// Lines that an origin's thread writes down for the test.
final class Notes: Sendable {
    private let lines = Mutex<[String]>([])

    func add(_ line: String) { self.lines.withLock { $0.append(line) } }
    var all: [String] { self.lines.withLock { $0 } }
    var count: Int { self.all.count }
}
