package import LarderControl
import LarderHTTP
import LarderProxy
import NIOCore
package import NIOPosix
import Synchronization

/// Answers what commands ask of the running proxy.
package protocol ControlResponder: Sendable {
    /// Answers one request, by any number of replies; `.end` is not one of them.
    ///
    /// - Parameter reply: sends one line; returns when the client can take more.
    /// - Throws: `ControlRefusal` with what the client is to be told.
    func answer(
        _ request: ControlRequest, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws
}

/// The proxy's end of the control socket.
///
/// ```
/// init (bound, listening) ──▶ run ──cancelled──▶ closed, file removed
/// ```
package struct ControlServer: Sendable {
    private typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

    /// Where commands find it.
    package let path: String
    private let descriptor: CInt
    /// What was made there.
    private let file: ControlSocket.File?
    private let group: MultiThreadedEventLoopGroup
    private let responder: any ControlResponder
    /// How often a command hears that its answer is being worked on.
    private let pulse: Duration
    private let connections: Int
    private let idleness: Duration
    private let silence: Duration

    /// Binds the first of these paths that can be bound.
    ///
    /// `run` must follow, for it closes the socket.
    ///
    /// - Parameters:
    ///   - connections: how many may be open; further commands wait until one closes.
    ///   - idleness: how long one stays open on which nothing comes and goes, and nothing waits to
    ///     be taken.
    ///   - silence: how long one stays open on which nothing has come yet: less than commands wait.
    /// - Throws: `.inUse` when another proxy answers at one of them, or why the last could not be
    ///   bound.
    package init(
        paths: [String], group: MultiThreadedEventLoopGroup, responder: any ControlResponder,
        pulse: Duration = .seconds(5), connections: Int = 32, idleness: Duration = .seconds(60),
        silence: Duration = .seconds(5)
    ) throws(ControlError) {
        var failure = ControlError(.notRunning, "there is no place for a control socket")
        for path in paths {
            do throws(ControlError) {
                self.descriptor = try ControlSocket.listen(at: path)
                self.path = path
                self.file = ControlSocket.file(path)
                self.group = group
                self.responder = responder
                self.pulse = pulse
                self.connections = connections
                self.idleness = idleness
                self.silence = silence
                return
            } catch {
                if error.code == .inUse { throw error }
                failure = error
            }
        }
        throw failure
    }

    /// Whether its file still lies where commands look for it.
    package var isFound: Bool { self.file != nil && ControlSocket.file(self.path) == self.file }

    /// Serves until cancelled, and removes the socket's file then.
    ///
    /// - Throws: when the socket fails, or `CancellationError`.
    package func run() async throws {
        defer { if let file = self.file { ControlSocket.remove(self.path, ifStill: file) } }
        // Connections come bare: an NIOAsyncChannel that is dropped unused, as happens to one that is
        // accepted in the moment of our end, traps. Nothing is read from them before they have one.
        let connections = self.connections
        let server = try await ServerBootstrap(group: self.group)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let gate = ListenerGate.make(connections: connections)
                    try channel.pipeline.syncOperations.addHandler(gate)
                }
            }
            .childChannelOption(ChannelOptions.autoRead, value: false)
            .bind(self.descriptor) { $0.eventLoop.makeSucceededFuture($0) }
        try await server.executeThenClose { connections in
            try await withThrowingDiscardingTaskGroup { group in
                for try await channel in connections {
                    group.addTask { await self.serve(channel) }
                }
            }
        }
    }

    /// Answers the requests of one connection, one after the other.
    private func serve(_ channel: any Channel) async {
        // Whatever ends one connection ends only that one: a command that left, or that sent junk.
        guard let connection = try? await self.open(channel) else { return }
        try? await connection.executeThenClose { inbound, outbound in
            let send: @Sendable (ControlReply) async throws -> Void = { reply in
                try await outbound.write(ByteBuffer(bytes: try ControlCodec.line(reply)))
            }
            var splitter = LineSplitter()
            for try await piece in inbound {
                for line in try splitter.push(piece.readableBytesView) {
                    try await self.answer(line, send)
                }
            }
        }
    }

    /// Begins to read from a connection.
    private func open(_ channel: any Channel) async throws -> Connection {
        let idleness = TimeAmount.microseconds(self.idleness.inMicroseconds)
        let silence = TimeAmount.microseconds(self.silence.inMicroseconds)
        return try await channel.eventLoop.submit {
            // While an answer is being worked on, it is not idle: it gets a pulse. Where the command
            // does not take that, it waits to be sent.
            try channel.pipeline.syncOperations.addHandlers(
                SilenceEnd(after: silence), IdleStateHandler(allTimeout: idleness), IdleEnd())
            let connection = try Connection(
                wrappingChannelSynchronously: channel,
                configuration: .init(isOutboundHalfClosureEnabled: true))
            channel.setOption(ChannelOptions.autoRead, value: true).whenFailure { _ in
                channel.close(promise: nil)
            }
            return connection
        }.get()
    }

    private func answer(
        _ line: [UInt8], _ send: @escaping @Sendable (ControlReply) async throws -> Void
    ) async throws {
        let request: ControlRequest
        do throws(ControlError) {
            request = try ControlCodec.message(ControlRequest.self, from: line)
        } catch {
            let code: ControlFailure.Code =
                error.code == .unknownVersion ? .unknownVersion : .malformed
            return try await send(.failed(ControlFailure(code, error.description)))
        }
        do {
            try await self.answer(request, send)
        } catch let refusal as ControlRefusal {
            return try await send(.failed(refusal.failure))
        } catch {
            return try await send(.failed(ControlFailure(.failed, String(describing: error))))
        }
        try await send(.end)
    }

    /// Has a request answered, and says now and then that it is being worked on: a command gives up
    /// after a while without a word.
    private func answer(
        _ request: ControlRequest, _ send: @escaping @Sendable (ControlReply) async throws -> Void
    ) async throws {
        let count = ProgressCount()
        let pulse = self.pulse
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while true {
                    try await Task.sleep(for: pulse)
                    try await send(.progress(count.value))
                }
            }
            defer { group.cancelAll() }
            try await self.responder.answer(request) { reply in
                count.note(reply)
                try await send(reply)
            }
        }
    }
}

/// What was told last of how far an answer is, for saying it again.
private final class ProgressCount: Sendable {
    private let last = Atomic<UInt64>(0)

    var value: UInt64 { self.last.load(ordering: .relaxed) }

    func note(_ reply: ControlReply) {
        if case .progress(let count) = reply { self.last.store(count, ordering: .relaxed) }
    }
}
