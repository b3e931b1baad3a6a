import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("The time for what a stream task does (§3.1, §3.6)")
struct StreamsPatienceTests {
    /// One that takes everything, and says nothing.
    private static func silentOrigin() async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            while true { _ = try await connection.wire.read(1) }
        }
    }

    /// Returns when what may take a second would have taken too long.
    ///
    /// Tasks that wait for data are the clock.
    private static func letTimePass() async throws {
        let origin = try await Self.silentOrigin()
        let session = URLSession.alone { $0.timeoutIntervalForRequest = 0.5 }
        for _ in 0..<3 {
            #expect(try await session.loaded(origin.url("/")).code == .timedOut)
        }
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("stands still while it is suspended, and begins anew when it goes on")
    func suspended() async throws {
        let origin = try await Self.silentOrigin()
        let session = URLSession.alone()
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        task.resume()
        // It is connected.
        try await task.write(Data("a".utf8), timeout: 0)
        task.suspend()
        let (read, written) = (Event<[URLError.Code?]>([]), Event<[URLError.Code?]>([]))
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 1) { _, _, error in
            read.change { $0.append((error as? URLError)?.code) }
        }
        task.write(Data("b".utf8), timeout: 1) { error in
            written.change { $0.append((error as? URLError)?.code) }
        }
        try await Self.letTimePass()
        #expect(read.value.isEmpty && written.value.isEmpty && task.state == .suspended)
        task.resume()
        try await written.wait(for: "the write") { !$0.isEmpty }
        try await read.wait(for: "the read") { !$0.isEmpty }
        #expect(written.value == [nil] && read.value == [.timedOut])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("begins with the task, where something was asked before")
    func early() async throws {
        let origin = try await Self.silentOrigin()
        let session = URLSession.alone()
        let task = session.streamTask(withHostName: "127.0.0.1", port: origin.port)
        let early = Event<[URLError.Code?]>([])
        task.readData(ofMinLength: 1, maxLength: 1, timeout: 1) { _, _, error in
            early.change { $0.append((error as? URLError)?.code) }
        }
        try await Self.letTimePass()
        #expect(early.value.isEmpty)
        task.resume()
        // One that has more time than that is the clock.
        let error = await #expect(throws: URLError.self) {
            try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 2)
        }
        #expect(error?.code == .timedOut && early.value == [.timedOut])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("stands still, too, where the task reads a response")
    func response() async throws {
        let file = try await FileOrigin.start(count: 100, stopsAt: 60)
        let delegate = BecomingDelegate()
        let session = URLSession.alone(delegate)
        session.dataTask(with: try file.url).resume()
        let stream = try await delegate.stream()
        stream.suspend()
        let read = Event<[URLError.Code?]>([])
        stream.readData(ofMinLength: 99, maxLength: 99, timeout: 1) { _, _, error in
            read.change { $0.append((error as? URLError)?.code) }
        }
        try await Self.letTimePass()
        #expect(read.value.isEmpty && stream.state == .suspended)
        stream.resume()
        try await read.wait(for: "the read") { !$0.isEmpty }
        #expect(read.value == [.timedOut])
        file.goOn.change { $0 = true }
        session.invalidateAndCancel()
        await file.origin.stop()
    }
}
