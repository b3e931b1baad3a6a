import Testing

@testable import LarderProcess

@Suite("Memory does not grow with bodies", .timeLimit(.minutes(10)))
struct VolumeTests {
    private static let size = 64 << 20
    private static let piece = [UInt8](repeating: 120, count: 1 << 18)
    /// What an exchange may hold, its allocator's slack included, in KiB.
    private static let bound = 16 << 10

    @Test(
        "A client that stops reading holds 64 MiB back, not the proxy's memory",
        arguments: [true, false])
    func slowReader(_ isStored: Bool) async throws {
        let sent = Event(0)
        try await Scene.scripted { connection in
            guard try await connection.request()?.target == "/large" else {
                return try await connection.send(response(body: "x", cache: nil))
            }
            let cache = isStored ? "max-age=60" : "no-store"
            try await connection.send(
                "HTTP/1.1 200 OK\r\nCache-Control: \(cache)\r\nContent-Length: \(Self.size)\r\n\r\n"
            )
            for _ in 0..<(Self.size / Self.piece.count) {
                try await connection.wire.send(Self.piece)
                sent.change { $0 += Self.piece.count }
            }
            _ = try await connection.wire.readAll()
        } _: { scene in
            _ = try await scene.get("/warm")
            let before = scene.proxy.anonymousMemory
            let client = try await scene.proxy.connect(reads: false)
            try await client.send(scene.request("GET", "/large"))
            try await sent.wait(for: "the first pieces") { $0 > 0 }
            // Others are served meanwhile.
            for _ in 0..<20 { _ = try await scene.get("/other") }
            #expect(scene.proxy.anonymousMemory - before < Self.bound)
            try await client.resumeReading()
            _ = try await client.head()
            try await client.count(to: Self.size)
            #expect(scene.proxy.anonymousMemory - before < Self.bound)
        }
    }

    @Test("A body of 32 MiB is uploaded through it, and what the origin does not take waits")
    func upload() async throws {
        let size = 32 << 20
        let isOpen = Event(false)
        let begun = Event(false)
        try await Scene.scripted { connection in
            let head = try await connection.requestHead()
            guard head.target == "/large" else {
                return try await connection.send(response(body: "x", cache: nil))
            }
            begun.change { $0 = true }
            try await isOpen.wait(for: "the barrier") { $0 }
            try await connection.wire.count(to: size)
            try await connection.send(response(body: "all", cache: nil))
        } _: { scene in
            _ = try await scene.get("/warm")
            let before = scene.proxy.anonymousMemory
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("PUT", "/large", ["Content-Length: \(size)"]))
            let sending = Task {
                for _ in 0..<(size / Self.piece.count) { try await client.send(Self.piece) }
            }
            try await begun.wait(for: "the request") { $0 }
            for _ in 0..<20 { _ = try await scene.get("/other") }
            #expect(scene.proxy.anonymousMemory - before < Self.bound)
            isOpen.change { $0 = true }
            try await sending.value
            let answer = try await client.message(to: "PUT")
            #expect(answer.text == "all")
            #expect(scene.proxy.anonymousMemory - before < Self.bound)
        }
    }
}
