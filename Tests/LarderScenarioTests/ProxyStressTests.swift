import Foundation
import Glibc
import Testing

@testable import LarderProcess
@testable import LarderStress

@Suite("A whole proxy under stress", .timeLimit(.minutes(5)), .serialized)
struct ProxyStressTests {
    /// The number before `word` in what was said.
    private func number(_ word: String, in said: String) -> Int {
        let words = said.split { $0 == " " || $0 == "," || $0 == "(" || $0 == ")" || $0 == "\n" }
        let place = words.lastIndex { $0 == word } ?? 0
        return place > 0 ? Int(words[place - 1]) ?? 0 : 0
    }

    @Test("Killed again and again, it starts at once, and every answer is right")
    func killed() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let said = try await Stress.run(
                in: home,
                [
                    "soak", "--larder", Program.larder, "--seconds", "14", "--kill-every", "0.4",
                    "--clients", "4",
                ])
            #expect(self.number("kills", in: said) >= 5, "\(said)")
            #expect(self.number("requests", in: said) >= 200, "\(said)")
        }
    }

    @Test(
        "What a disk refuses is said once; forwarding goes on, and storing once it takes again",
        .enabled(if: Stress.compiler != nil, "no C compiler"),
        arguments: [("write", EIO), ("write", ENOSPC), ("write", 0), ("sync", EIO)])
    func recovery(_ operation: String, _ error: Int32) async throws {
        try await Scene.inTurn {
            let home = try Home()
            let library = try await Stress.library(in: home)
            let faults = try FaultControl(path: home.path + "/faults")
            try home.configure("sessions: {default: {cache: {memory: 0 B}}}")
            let variables = ["LD_PRELOAD": library, "LARDER_DISK_FAULTS": faults.path]
            let proxy = try await home.serve(variables: variables)
            let origin = try await ScriptedOrigin.answering { request in
                response(body: request.target + String(repeating: "x", count: 100_000))
            }
            func get(_ path: String) async throws -> Message {
                let answer = try await proxy.get(origin.url(path))
                #expect(answer.status == 200)
                #expect(answer.text.hasPrefix(path + "x"))
                #expect(answer.body.count == path.utf8.count + 100_000)
                return answer
            }
            _ = try await get("/before")
            _ = try await proxy.getStored(origin.url("/before"))

            try faults.set(operation == "sync" ? .sync : .write, error: error)
            for number in 0..<30 { _ = try await get("/during\(number)") }
            try await proxy.program.said("nothing is stored on disk for now")
            try faults.set([])
            /// Asks for new things until `larder cache stats` tells what is looked for.
            func stats(tell text: String, asking name: String) async throws {
                let limit = ContinuousClock.now + .seconds(60)
                var number = 0
                while ContinuousClock.now < limit {
                    number += 1
                    _ = try await get("/\(name)\(number)")
                    if try await home.cache("stats").outText.contains(text) { return }
                }
                throw TimedOut(description: "\(text); the proxy said: \(proxy.log)")
            }
            // It tries again ten seconds after the failure: then what is new is stored.
            try await stats(tell: "stored again since", asking: "after")
            _ = try await get("/last")
            _ = try await proxy.getStored(origin.url("/last"))
            // A failure soon after is the same trouble; whoever looks sees it at once.
            try faults.set(operation == "sync" ? .sync : .write, error: error)
            try await stats(tell: "nothing is stored for now", asking: "again")
            try faults.set([])
            #expect(
                proxy.log.components(separatedBy: "nothing is stored on disk for now").count == 2)
            // Nor is it known yet whether it has lasted.
            #expect(!proxy.log.contains("storing on disk again"))
            #expect(try await proxy.stop().status == 0)
            let again = try await home.serve()
            let kept = try await again.get(origin.url("/last"))
            #expect(kept["Cache-Status"]?.contains("hit") == true)
            #expect(kept.text.hasPrefix("/lastx"))
            _ = try await again.stop()
            await origin.stop()
        }
    }

    @Test(
        "On a disk that fails in every way it forwards on, says so, and gives no wrong byte",
        .enabled(if: Stress.compiler != nil, "no C compiler"))
    func failingDisk() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let library = try await Stress.library(in: home)
            let said = try await Stress.run(
                in: home,
                [
                    "soak", "--larder", Program.larder, "--seconds", "14", "--kill-every", "5",
                    "--clients", "4", "--library", library,
                ])
            // A disk that has failed is left alone for a while: how many fit in is chance.
            #expect(self.number("faults", in: said) >= 1, "\(said)")
            #expect(self.number("requests", in: said) >= 200, "\(said)")
        }
    }
}
