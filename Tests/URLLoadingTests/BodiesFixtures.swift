import Foundation
import LarderHTTP
import NIOCore
import Synchronization

@testable import LarderProcess
@testable import URLLoading

/// A directory of its own for one test, gone afterwards.
struct Scratch: Sendable {
    let url: URL

    static func with<Result>(
        _ body: (Scratch) async throws -> Result
    ) async throws -> Result {
        let url = FileManager.default.temporaryDirectory
            .appendingPathComponent("url-loading-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: url) }
        return try await body(Scratch(url: url))
    }

    func file(_ name: String, _ bytes: [UInt8]) throws -> URL {
        let url = self.url.appendingPathComponent(name)
        try Data(bytes).write(to: url)
        return url
    }

    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: self.url.path).sorted() }
    }
}

/// Reads a body source to its end, as an upstream does.
enum Pulled {
    struct Outcome: Sendable {
        var bytes: [UInt8] = []
        var pieces = 0
        var longest = 0
        var failure: BodyFailure?
    }

    static func all(
        of source: any BodySource, between: () -> Void = {}
    ) async throws -> Outcome {
        let wakes = Event(0)
        source.attach { wakes.change { $0 += 1 } }
        var outcome = Outcome()
        var seen = 0
        while true {
            switch source.next() {
            case .piece(let piece):
                outcome.bytes += piece.readableBytesView
                outcome.pieces += 1
                outcome.longest = max(outcome.longest, piece.readableBytes)
                between()
            case .pending:
                let waitedFor = seen + 1
                try await wakes.wait(for: "a piece") { $0 >= waitedFor }
                seen = waitedFor
            case .end: return outcome
            case .failed(let failure):
                outcome.failure = failure
                return outcome
            }
        }
    }
}

extension BodyConsumer {
    /// Gives it a piece, and waits until it wants the next.
    func taking(_ bytes: [UInt8]) async -> BodyConsumerError? {
        await withCheckedContinuation { continuation in
            self.take(ByteBuffer(bytes: bytes)) { continuation.resume(returning: $0) }
        }
    }

    func finishing() async -> BodyConsumerError? {
        await withCheckedContinuation { continuation in
            self.finish { continuation.resume(returning: $0) }
        }
    }
}

/// Bytes that tell where they stand.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}

extension ScriptedOrigin {
    /// An origin of one body that hardly ends, sent as fast as whoever reads it takes it.
    ///
    /// - Returns: `sent`, how many MiB have left so far; `over`, whether the connection has been let go.
    static func pouring() async throws -> (ScriptedOrigin, sent: Event<Int>, over: Event<Bool>) {
        let sent = Event(0)
        let over = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.request()
            try await connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            let piece = [UInt8](repeating: 1, count: 1 << 20)
            do {
                while sent.value < 900 {
                    try await connection.wire.send(piece)
                    sent.change { $0 += 1 }
                }
            } catch {}
            over.change { $0 = true }
        }
        return (origin, sent, over)
    }
}
