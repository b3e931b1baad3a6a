import Dispatch
import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("WebSocket tasks that are cancelled without a word (§3.7, RFC 6455 §7.1.1)")
struct WebSocketCloseTests {
    /// What a peer reads behind the handshake: frames, then the end of the connection.
    private static func listening(
        from begins: Event<Bool> = Event(true)
    ) async throws -> (ScriptedOrigin, Event<[ClientFrame]>, ended: Event<Bool>) {
        let frames = Event<[ClientFrame]>([])
        let ended = Event(false)
        let origin = try await ScriptedOrigin.start { connection in
            defer { ended.change { $0 = true } }
            let request = try await connection.requestHead()
            try await connection.wire.pauseReading()
            try await connection.accept(request)
            try await begins.wait(for: "leave to read") { $0 }
            try await connection.wire.resumeReading()
            while true {
                let frame = try await connection.frame()
                frames.change { $0.append(frame) }
            }
        }
        return (origin, frames, ended)
    }

    private static func open(
        _ origin: ScriptedOrigin
    ) async throws -> (URLSession, WebSocketRecorder, URLSessionWebSocketTask) {
        let delegate = WebSocketRecorder()
        let session = URLSession.plain(delegate)
        let task = session.webSocketTask(with: try URL.of("ws://\(origin.authority)/"))
        task.resume()
        try await delegate.messages.wait(for: "the opening") { $0.contains("open -") }
        return (session, delegate, task)
    }

    @Test("send a close frame without a body, behind what was sent", arguments: [true, false])
    func empty(_ isSessions: Bool) async throws {
        let (origin, frames, ended) = try await Self.listening()
        let (session, delegate, task) = try await Self.open(origin)
        try await task.send(.string("a"))
        if isSessions { session.invalidateAndCancel() } else { task.cancel() }
        try await delegate.completion()
        #expect((delegate.errors.value.first as? URLError)?.code == .cancelled)
        #expect(task.closeCode == .invalid && task.closeReason == nil)
        #expect(!delegate.messages.value.contains { $0.hasPrefix("close") })
        try await ended.wait(for: "the end") { $0 }
        #expect(
            frames.value == [
                ClientFrame(first: 0x81, payload: Array("a".utf8)),
                ClientFrame(first: 0x88, payload: []),
            ])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("send it also where they stand still, and what waits behind that never")
    func suspended() async throws {
        let (origin, frames, ended) = try await Self.listening()
        let (session, delegate, task) = try await Self.open(origin)
        task.suspend()
        task.send(.string("never")) { _ in }
        task.cancel()
        try await delegate.completion()
        try await ended.wait(for: "the end") { $0 }
        #expect(frames.value == [ClientFrame(first: 0x88, payload: [])])
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("say nothing in the midst of a message, and wait for no peer that does not read")
    func blocked() async throws {
        let begins = Event(false)
        let (origin, frames, ended) = try await Self.listening(from: begins)
        let session = URLSession.plain()
        let task = session.webSocketTask(with: try URL.of("ws://\(origin.authority)/"))
        let recorder = LoadRecorder()
        let queue = DispatchQueue(label: "test.websocket")
        let load = WebSocketLoad(
            LoadOrder(request: try #require(task.originalRequest), task: task), recorder,
            queue: queue)
        load.begin(of: session)
        try await recorder.hears("answered")
        let answer = try #require(recorder.answer.withLock { $0 })
        _ = try task.purpose.consumer(of: answer, for: task)
        // As where the task is resumed, which would begin a load of its own.
        load.pause(if: { false })
        // More than the kernel keeps for whoever does not read.
        task.send(.data(Data(count: 8 << 20))) { _ in }
        load.cancel()
        try await recorder.hears("measured")
        // What `cancel` leaves to its queue is done: only now the peer reads. One that read before would
        // make room for the whole message.
        queue.sync {}
        begins.change { $0 = true }
        try await ended.wait(for: "the end") { $0 }
        #expect(frames.value.isEmpty)
        session.invalidateAndCancel()
        await origin.stop()
    }

    @Test("say nothing where there is no WebSocket yet")
    func early() async throws {
        let rest = Event<[UInt8]?>(nil)
        let origin = try await ScriptedOrigin.start { connection in
            _ = try await connection.requestHead()
            let byte = try? await connection.wire.read(1)
            rest.change { $0 = byte ?? [] }
        }
        let delegate = WebSocketRecorder()
        let session = URLSession.plain(delegate)
        let task = session.webSocketTask(with: try URL.of("ws://\(origin.authority)/"))
        task.resume()
        try await origin.requests.wait(for: "the handshake") { !$0.isEmpty }
        task.cancel()
        try await delegate.completion()
        try await rest.wait(for: "the end") { $0 != nil }
        #expect(rest.value == [])
        session.invalidateAndCancel()
        await origin.stop()
    }
}
