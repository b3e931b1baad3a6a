import Foundation
import SeededNumbers
import Testing

/// The inputs that are checked in for one target.
struct FuzzInputs: Sendable, CustomTestStringConvertible {
    let target: FuzzTarget

    var testDescription: String { self.target.name }

    static let all = FuzzTarget.all.map { FuzzInputs(target: $0) }

    static let package = URL(filePath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Files under `Seeds` or `Findings`, in the order of their names.
    func files(_ folder: String) throws -> [(name: String, bytes: [UInt8])] {
        let place = Self.package.appending(path: "\(folder)/\(self.target.name)")
        guard FileManager.default.fileExists(atPath: place.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: place.path).sorted().map {
            ($0, Array(try Data(contentsOf: place.appending(path: $0))))
        }
    }

    func seeds() throws -> [[UInt8]] { try self.files("Seeds").map(\.bytes) }

    /// Fails the test with the promise that the input breaks.
    func check(_ input: [UInt8]) {
        do throws(Violation) {
            try self.target.check(input)
        } catch {
            let text = String(decoding: input, as: UTF8.self).debugDescription
            Issue.record("\(error); input: \(text)")
        }
    }
}

@Suite("Parsers keep their promises")
struct PromiseTests {
    private static let rounds = 250

    @Test("for each seed, and for each input that ever broke one", arguments: FuzzInputs.all)
    func files(_ inputs: FuzzInputs) throws {
        let seeds = try inputs.files("Seeds")
        #expect(seeds.count >= 3)
        for file in try seeds + inputs.files("Findings") {
            #expect(file.bytes.count <= 4096, "\(file.name) is too long to be a seed")
            inputs.check(file.bytes)
        }
    }

    @Test("and have seeds and findings for targets only")
    func folders() throws {
        let names = Set(FuzzTarget.all.map(\.name))
        #expect(names.count == FuzzTarget.all.count)
        for folder in ["Seeds", "Findings"] {
            let place = FuzzInputs.package.appending(path: folder).path
            for name in try FileManager.default.contentsOfDirectory(atPath: place) {
                #expect(names.contains(name), "\(folder)/\(name) belongs to no target")
            }
        }
    }

    @Test("for seeds that end too early", arguments: FuzzInputs.all)
    func cut(_ inputs: FuzzInputs) throws {
        for seed in try inputs.seeds() {
            // Every byte of short ones, up to a hundred places in long ones.
            for end in stride(from: 0, to: seed.count, by: seed.count / 100 + 1) {
                inputs.check(Array(seed[..<end]))
            }
        }
    }

    @Test("for seeds glued together", arguments: FuzzInputs.all)
    func glued(_ inputs: FuzzInputs) throws {
        let seeds = try inputs.seeds()
        for first in seeds {
            for second in seeds { inputs.check(first + second) }
        }
    }

    @Test("for damaged seeds", arguments: FuzzInputs.all)
    func damaged(_ inputs: FuzzInputs) throws {
        let seeds = try inputs.seeds()
        var generator = SplitMix64(seed: 1)
        for round in 0..<Self.rounds {
            let seed = seeds[round % seeds.count]
            let other = seeds[Int.random(in: seeds.indices, using: &generator)]
            inputs.check(generator.mutated(seed, crossing: other))
        }
    }

    @Test("for junk", arguments: FuzzInputs.all)
    func junk(_ inputs: FuzzInputs) {
        var generator = SplitMix64(seed: 2)
        for _ in 0..<Self.rounds { inputs.check(generator.junk()) }
        inputs.check([])
        for byte in UInt8.min...UInt8.max { inputs.check([byte]) }
    }

    @Test("which can be seen to be broken")
    func violation() {
        #expect(throws: Violation.self) { try hold(false, "never") }
    }
}
