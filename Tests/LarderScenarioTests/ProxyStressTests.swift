import Glibc
import Testing

@testable import LarderProcess

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
            #expect(self.number("faults", in: said) >= 3, "\(said)")
            #expect(self.number("requests", in: said) >= 200, "\(said)")
        }
    }
}
