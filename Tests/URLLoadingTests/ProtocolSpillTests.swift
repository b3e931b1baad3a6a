import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Pushes 64 MiB in pieces of 1 MiB, in one go.
private final class PushingProtocol: URLProtocol, @unchecked Sendable {
    static let count = 64

    override class func canInit(with request: URLRequest) -> Bool {
        request.url?.scheme == "push"
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = self.request.url else { return }
        let response = URLResponse(
            url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
        self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        for number in 0..<Self.count {
            self.client?.urlProtocol(
                self, didLoad: Data(repeating: UInt8(number), count: 1 << 20))
        }
        self.client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

@Suite("What a protocol pushes faster than it is read (§10)")
struct ProtocolSpillTests {
    private static func piece(_ number: Int, _ count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) })
    }

    @Test("lies in a file beyond a bound, and comes out as it went in")
    func order() async throws {
        let body = QueuedBody(spillingAbove: 10_000)
        var whole: [UInt8] = []
        var sizes: [Int] = []
        for number in 0..<200 {
            let piece = Self.piece(number, [1, 900, 4000, 9999, 10_001, 50_000][number % 6])
            whole += piece
            sizes.append(piece.count)
            body.append(piece)
            #expect(body.held <= 10_000)
        }
        body.finish()
        let outcome = try await Pulled.all(of: body)
        #expect(outcome.bytes == whole)
        #expect(outcome.pieces == sizes.count)
        #expect(outcome.failure == nil && body.given == Int64(whole.count))
        #expect(body.held == 0)
    }

    @Test("comes in parts where a piece is large, also from the file")
    func large() async throws {
        let body = QueuedBody(spillingAbove: 100)
        let piece = Data(pattern(5 << 19))
        body.append(piece)
        body.append(Data([1]))
        body.finish()
        let outcome = try await Pulled.all(of: body)
        #expect(outcome.bytes == Array(piece) + [1])
        #expect(outcome.longest == 1 << 20)
    }

    @Test("is read while it is pushed, and the file's room is used again")
    func concurrent() async throws {
        for round in 0..<20 {
            let body = QueuedBody(spillingAbove: 5000)
            let wholes = (0..<200).map { Self.piece($0, 100 + 37 * ($0 % 90)) }
            async let outcome = Pulled.all(of: body)
            DispatchQueue.global().async {
                for piece in wholes { body.append(piece) }
                if round % 2 == 0 { body.finish() } else { body.fail(URLError(.timedOut)) }
            }
            let bytes = try await outcome
            #expect(bytes.bytes == wholes.flatMap { Array($0) })
            #expect((bytes.failure != nil) == (round % 2 == 1))
        }
    }

    @Test("is let go of when its reader leaves, whatever is under way (200 times)")
    func cancelled() async throws {
        for round in 0..<200 {
            let body = QueuedBody(spillingAbove: 100)
            let isLeft = Event(0)
            body.whenLeft { isLeft.change { $0 += 1 } }
            body.attach {}
            await Race.atOnce(
                { for number in 0..<20 { body.append(Self.piece(number, 90)) } },
                { for _ in 0..<(round % 20) { _ = body.next() } }, { body.cancel() })
            #expect(isLeft.value == 1)
            body.append(Data([1]))
            #expect(body.held == 0)
        }
    }

    @Test("goes through a session as a whole, with and without files", arguments: [true, false])
    func session(_ isEphemeral: Bool) async throws {
        let configuration: URLSessionConfiguration = isEphemeral ? .ephemeral : .default
        configuration.urlCache = nil
        configuration.protocolClasses = [PushingProtocol.self]
        let session = URLSession(configuration: configuration)
        let (bytes, _) = try await session.bytes(from: try URL.of("push://all"))
        var count = 0
        var isOrdered = true
        for try await byte in bytes {
            if Int(byte) != count >> 20 { isOrdered = false }
            count += 1
            // A part of it: a loop over each byte of the whole takes a debug build long.
            if count == (1 << 20) + 1000 { break }
        }
        #expect(isOrdered && count == (1 << 20) + 1000)
        let (data, _) = try await session.data(from: try URL.of("push://all"))
        #expect(data.count == PushingProtocol.count << 20)
        let samples = stride(from: 0, to: data.count, by: 997)
        #expect(samples.allSatisfy { Int(data[$0]) == $0 >> 20 })
        session.invalidateAndCancel()
    }

    @Test("is kept in the order of what is reserved, filled and read, by whoever is first")
    func pieces() {
        var pieces = QueuedPieces()
        pieces.append(Data([1]))
        #expect(pieces.reserve(10) == 0)
        #expect(pieces.reserve(20) == 10)
        pieces.append(Data([2]))
        #expect(pieces.held == 2)
        #expect(pieces.next() == .data(Data([1])))
        #expect(pieces.next() == .notYet)
        pieces.filled(10)
        #expect(pieces.next() == .notYet)
        pieces.filled(0)
        #expect(pieces.next() == .stored(offset: 0, count: 10))
        pieces.reuseFile()
        #expect(pieces.reserve(5) == 30)
        #expect(pieces.next() == .stored(offset: 10, count: 20))
        #expect(pieces.next() == .data(Data([2])))
        pieces.filled(30, orKeep: Data([3]))
        #expect(pieces.held == 1)
        pieces.reuseFile()
        #expect(pieces.reserve(1) == 0)
        #expect(pieces.next() == .data(Data([3])))
        #expect(pieces.next() == .notYet)
    }
}
