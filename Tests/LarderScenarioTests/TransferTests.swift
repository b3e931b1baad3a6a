import Testing

@testable import LarderProcess

@Suite("Transfers of a background session through a whole proxy", .timeLimit(.minutes(10)))
struct TransferTests {
    private static let settings =
        "sessions: {default: {kind: background, cache: {finish-fetch: 0}}}\n"
    private static let size = 8 << 20

    /// An origin that knows ranges, and sends no more than 3 MiB of an answer before it is let.
    private static func origin(
        _ content: RangedContent, _ isOpen: Event<Bool>, sends limit: Int = 3 << 20
    ) async throws -> ScriptedOrigin {
        try await ScriptedOrigin.start { connection in
            while let request = try await connection.request() {
                let (head, bytes) = content.response(to: request)
                try await connection.send(head)
                try await connection.wire.send(Array(bytes.prefix(limit)))
                guard bytes.count > limit else { continue }
                try await isOpen.wait(for: "leave to go on") { $0 }
                try await connection.wire.send(Array(bytes.dropFirst(limit)))
            }
        }
    }

    /// Asks for something, receives a part of it, and leaves.
    private static func begin(
        _ url: String, at proxy: ProxyProcess, _ fields: [String] = []
    ) async throws {
        let client = try await proxy.connect()
        try await client.send(ProxyProcess.request("GET", url, fields))
        let head = try await client.head()
        #expect(head.status == 200)
        try await client.count(to: 1 << 20)
        try await client.close()
    }

    private static func transfers(_ home: Home, _ arguments: String...) async throws
        -> Program.Output
    {
        try await home.start(["transfers"] + arguments + ["--config", home.configuration]).ended()
    }

    /// Has the transfer of one URL end, however it does; what it brought is the answer to the next request.
    private static func end(
        _ home: Home, _ proxy: ProxyProcess, _ url: String, _ content: RangedContent
    ) async throws {
        try await proxy.program.said("transfer complete")
        let hit = try await proxy.get(url)
        #expect(hit["Cache-Status"]?.hasPrefix("larder; hit") == true)
        #expect(hit.body == content.content)
        #expect(try await Self.transfers(home).lines.isEmpty)
    }

    @Test("Its client has left, and it goes on to the end; it is listed as long as it does")
    func goesOn() async throws {
        try await Scene.inTurn {
            let (home, isOpen) = (try Home(), Event(false))
            try home.configure(Self.settings + "log: {level: info}")
            let content = RangedContent(Self.size)
            let origin = try await Self.origin(content, isOpen)
            let proxy = try await home.serve()
            try await Self.begin(origin.url("/a"), at: proxy)
            let list = try await Self.transfers(home)
            #expect(list.lines.count == 2)
            #expect(
                list.outText.contains(" of 8 MiB ") && list.outText.contains(" running "),
                "\(list.outText)")
            isOpen.change { $0 = true }
            try await Self.end(home, proxy, origin.url("/a"), content)
            #expect(origin.count == 1)
            #expect(try await proxy.stop().status == 0)
            await origin.stop()
        }
    }

    @Test(
        "It goes on after a restart from where it was, and after a kill from where the disk has it",
        arguments: [false, true])
    func restarts(_ isKilled: Bool) async throws {
        try await Scene.inTurn {
            let (home, isOpen) = (try Home(), Event(false))
            try home.configure(Self.settings + "log: {level: info}")
            let content = RangedContent(Self.size)
            let origin = try await Self.origin(content, isOpen)
            let first = try await home.serve()
            try await Self.begin(
                origin.url("/a"), at: first, ["X-Own: yes"])
            #expect(try await Self.transfers(home, "--json").lines.count == 1)
            if isKilled {
                try await first.crash()
            } else {
                #expect(try await first.stop().status == 0)
            }
            let state = home.tree.keys.filter { $0.hasSuffix("state.mdb") }
            #expect(state.count == 1)
            isOpen.change { $0 = true }
            let second = try await home.serve()
            try await second.program.said("transfer complete")
            let asked = origin.requests.value
            #expect(asked.count == 2)
            #expect(asked.last?["X-Own"] == "yes")
            if !isKilled {
                #expect(asked.last?["If-Range"] == "\"one\"")
                #expect(asked.last?["Range"]?.hasSuffix("-\(Self.size - 1)") == true)
            }
            let hit = try await second.get(origin.url("/a"), "X-Own: yes")
            #expect(hit.body == content.content)
            #expect(try await Self.transfers(home).lines.isEmpty)
            #expect(try await second.stop().status == 0)
            // What is over is forgotten.
            let third = try await home.serve()
            #expect(try await Self.transfers(home).lines.isEmpty)
            #expect(try await third.stop().status == 0)
            await origin.stop()
        }
    }

    @Test("It is gone on with where the origin cuts the connection")
    func cut() async throws {
        try await Scene.inTurn {
            let (home, isCut) = (try Home(), Event(false))
            try home.configure(Self.settings + "log: {level: info}")
            let content = RangedContent(Self.size)
            let origin = try await ScriptedOrigin.start { connection in
                while let request = try await connection.request() {
                    let (head, bytes) = content.response(to: request)
                    try await connection.send(head)
                    guard request["Range"] == nil else {
                        try await connection.wire.send(Array(bytes))
                        continue
                    }
                    try await connection.wire.send(Array(bytes.prefix(3 << 20)))
                    return try await isCut.wait(for: "leave to cut") { $0 }
                }
            }
            let proxy = try await home.serve()
            try await Self.begin(origin.url("/a"), at: proxy)
            #expect(try await Self.transfers(home, "--json").lines.count == 1)
            isCut.change { $0 = true }
            try await Self.end(home, proxy, origin.url("/a"), content)
            #expect(origin.requests.value.map { $0["If-Range"] } == [nil, "\"one\""])
            // Whoever asks for it, where the client has not left yet.
            #expect(origin.requests.value.last?["Range"]?.hasPrefix("bytes=3145728-") == true)
            #expect(try await proxy.stop().status == 0)
            await origin.stop()
        }
    }

    @Test("One that is cancelled ends, and is not taken up again")
    func cancelled() async throws {
        try await Scene.inTurn {
            let (home, isOpen) = (try Home(), Event(false))
            try home.configure(Self.settings + "log: {level: info}")
            let origin = try await Self.origin(RangedContent(Self.size), isOpen)
            let first = try await home.serve()
            try await Self.begin(origin.url("/a"), at: first)
            let cancel = try await Self.transfers(home, "cancel", "--all")
            #expect(cancel.status == 0)
            try await first.program.said("transfer cancelled")
            #expect(try await Self.transfers(home).lines.isEmpty)
            #expect(try await first.stop().status == 0)
            let second = try await home.serve()
            #expect(try await Self.transfers(home).lines.isEmpty)
            #expect(try await second.stop().status == 0)
            #expect(origin.count == 1)
            isOpen.change { $0 = true }
            await origin.stop()
        }
    }

    @Test("After a restart under rules that do not allow it any more it is given up, and said")
    func denied() async throws {
        try await Scene.inTurn {
            let (home, isOpen) = (try Home(), Event(false))
            try home.configure(Self.settings)
            let origin = try await Self.origin(RangedContent(Self.size), isOpen)
            let first = try await home.serve()
            try await Self.begin(origin.url("/a"), at: first)
            #expect(try await Self.transfers(home, "--json").lines.count == 1)
            #expect(try await first.stop().status == 0)
            try home.configure(
                Self.settings + "access: [{action: deny, destinations: ['127.0.0.1']}]")
            let second = try await home.serve()
            try await second.program.said("transfer given up")
            #expect(second.log.contains("the access rules do not allow it any more"))
            #expect(try await Self.transfers(home).lines.isEmpty)
            #expect(try await second.stop().status == 0)
            #expect(origin.count == 1)
            isOpen.change { $0 = true }
            await origin.stop()
        }
    }
}
