import Foundation
import Testing

@testable import LarderProcess

@Suite("The disk of a session's state", .timeLimit(.minutes(2)))
struct StateDiskTests {
    /// A cookie of nearly 4 KiB, for its own path alone.
    private static func answer(_ request: Message) -> String {
        guard request.target.hasPrefix("/set/") else {
            return response("200 OK", body: "ok", cache: "no-store")
        }
        let value = String(repeating: "v", count: 3900)
        return response(
            "200 OK", "Set-Cookie: c=\(value); Max-Age=86400; Path=\(request.target)", body: "set",
            cache: "no-store")
    }

    private func count(_ text: String, in proxy: ProxyProcess) -> Int {
        proxy.log.components(separatedBy: text).count - 1
    }

    @Test(
        "When it is full, that is said once; cookies go on in memory, and are kept once there is room",
        arguments: [false, true])
    func full(_ isMadeBefore: Bool) async throws {
        try await Scene.inTurn {
            try await SmallDisk.use("size=1m") { disk in
                let home = try Home()
                try home.configure(
                    """
                    sessions:
                      default: {cookies: {mode: jar}, state-directory: \(disk)/state}
                    """)
                let origin = try await ScriptedOrigin.answering { Self.answer($0) }
                let proxy = try await home.serve()
                if isMadeBefore {
                    _ = try await proxy.get(origin.url("/set/0"))
                    // A person's change is kept when the command ends, and with it what was before.
                    let none = try await home.larder("cookies", "clear", "--domain", "no.example")
                    #expect(none.outText == "0\n", "\(none.errText)")
                }
                try await SmallDisk.fill(disk, name: "filler")
                for i in 1...40 {
                    #expect(try await proxy.get(origin.url("/set/\(i)")).status == 200)
                }
                try await proxy.program.said("cookies are not kept for now")
                let refused = try await home.larder("cookies", "clear", "--domain", "no.example")
                #expect(refused.status != 0 && refused.errText.contains("space"))
                // What is not kept is in use all the same.
                _ = try await proxy.get(origin.url("/set/40"))
                #expect(origin.requests.value.last?.cookies.count == 1)
                #expect(self.count("cookies are not kept for now", in: proxy) == 1)

                try FileManager.default.removeItem(atPath: disk + "/filler")
                let kept = try await home.larder("cookies", "clear", "--domain", "no.example")
                #expect(kept.status == 0, "\(kept.errText)")
                try await proxy.program.said("cookies are kept again")
                #expect(self.count("cookies are kept again", in: proxy) == 1)
                try await proxy.crash()
                let again = try await home.serve()
                let list = try await home.larder("cookies", "list", "--json")
                #expect(list.lines.count == (isMadeBefore ? 41 : 40), "\(list.errText)")
                #expect(try await again.stop().status == 0)
                await origin.stop()
            }
        }
    }
}
