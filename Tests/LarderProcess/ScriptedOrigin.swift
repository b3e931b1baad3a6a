import NIOCore
import NIOPosix

/// An origin on a free port of loopback that does, on each connection, what a test says.
final class ScriptedOrigin: Sendable {
    typealias Script = @Sendable (OriginConnection) async throws -> Void

    /// Every request whose head and content were read, in the order of arrival.
    let requests = Event<[Message]>([])
    let connections = Event(0)
    private let listening = Event<(any Channel)?>(nil)

    /// An origin whose script speaks HTTP itself.
    ///
    /// - Parameter reads: false for one that takes nothing from a connection before `resumeReading`,
    ///   so that what its clients can send before is what the kernel keeps for it.
    static func start(
        reads: Bool = true, _ script: @escaping Script
    ) async throws -> ScriptedOrigin {
        let origin = ScriptedOrigin()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 256)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.autoRead, value: reads)
            .childChannelInitializer { channel in
                let wire = Wire()
                return channel.pipeline.addHandler(wire).map { origin.accept(wire, script) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        origin.listening.change { $0 = channel }
        return origin
    }

    /// An origin that answers each request with the bytes that `answer` makes of it.
    static func answering(
        _ answer: @escaping @Sendable (Message) async throws -> String
    ) async throws -> ScriptedOrigin {
        try await Self.start { connection in
            while let request = try await connection.request() {
                try await connection.wire.send(answer(request))
            }
        }
    }

    private func accept(_ wire: Wire, _ script: @escaping Script) {
        let index = self.connections.change { count in
            defer { count += 1 }
            return count
        }
        Task {
            let connection = OriginConnection(wire: wire, index: index, origin: self)
            // What goes wrong here is seen by the client, about whom the test is.
            do {
                try await wire.open()
                try await script(connection)
            } catch {}
            try await wire.close()
        }
    }

    var port: Int { self.listening.value?.localAddress?.port ?? 0 }
    var authority: String { "127.0.0.1:\(self.port)" }
    /// How many requests came.
    var count: Int { self.requests.value.count }

    func url(_ path: String) -> String { "http://\(self.authority)\(path)" }

    func stop() async { try? await self.listening.value?.close().get() }
}

/// One connection of a scripted origin; closed when its script ends.
struct OriginConnection: Sendable {
    let wire: Wire
    /// How many connections came before.
    let index: Int
    fileprivate let origin: ScriptedOrigin

    /// The next request with its content; nil when the connection has ended.
    func request() async throws -> Message? {
        try await self.wire.seen.wait(for: "a request") { !$0.bytes.isEmpty || $0.isOver }
        guard !self.wire.seen.value.bytes.isEmpty else { return nil }
        let request = try await self.wire.message()
        self.origin.requests.change { $0.append(request) }
        return request
    }

    /// The next request's head alone.
    func requestHead() async throws -> Message {
        let request = try await self.wire.head()
        self.origin.requests.change { $0.append(request) }
        return request
    }

    func send(_ text: String) async throws { try await self.wire.send(text) }
}

/// A response with its content and `Content-Length`.
func response(
    _ status: String = "200 OK", _ fields: String..., body: String = "",
    cache: String? = "max-age=600"
) -> String {
    var text = "HTTP/1.1 \(status)\r\n"
    if let cache { text += "Cache-Control: \(cache)\r\n" }
    for field in fields { text += "\(field)\r\n" }
    return text + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
}
