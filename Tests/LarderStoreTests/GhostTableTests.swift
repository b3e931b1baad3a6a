import LarderHTTP
import LarderStore
import SeededNumbers
import Testing

@Suite("What is remembered of evicted entries")
struct GhostTableTests {
    @Test("is found until it is taken, once")
    func life() {
        var ghosts = GhostTable(capacity: .mebibytes(1))
        ghosts.insert(7, size: 4096)
        #expect(ghosts.contains(7))
        #expect(!ghosts.contains(8))
        let (first, second) = (ghosts.take(7), ghosts.take(7))
        #expect(first)
        #expect(!second)
        #expect(ghosts.count == 0)
    }

    @Test("is forgotten after about a capacity of bytes has left after it")
    func horizon() {
        var ghosts = GhostTable(capacity: .mebibytes(16))
        ghosts.insert(1, size: 4096)
        var left: UInt64 = 0
        while ghosts.contains(1), left < 64 << 20 {
            // Always the same one: it takes no place from the first.
            ghosts.insert(2, size: 4096)
            left += 4096
        }
        #expect((14 << 20..<16 << 20).contains(left), "\(left) bytes")
    }

    @Test(
        "is bounded in bytes at any capacity, and never more than a small part of it",
        arguments: [
            0, 1, 4096, 1 << 20, 64 << 20, 40 << 30, 64 << 40, .max,
        ] as [UInt64])
    func bounded(capacity: UInt64) {
        let ghosts = GhostTable(capacity: ByteCount(capacity))
        #expect(ghosts.bytes <= 8 << 20)
        #expect(UInt64(ghosts.bytes) <= max(64, capacity / 512))
    }

    @Test("reaches as far as the main queue holds entries of 4 KiB, but for a few per cent")
    func reach() {
        let capacity: UInt64 = 64 << 20
        var ghosts = GhostTable(capacity: ByteCount(capacity))
        var random = SplitMix64(seed: 3)
        let marks = (0..<40_000).map { _ in random.next() }
        for mark in marks { ghosts.insert(mark, size: 4096) }
        let reach = Int(capacity / 10 * 9 / 4096) - 10
        let found = marks.suffix(reach).count { ghosts.contains($0) }
        #expect(found > reach * 97 / 100, "\(found) of \(reach)")
        let older = marks.prefix(marks.count - reach - 200).count { ghosts.contains($0) }
        #expect(older < 60, "\(older) too old")
        let strangers = (0..<100_000).count { _ in ghosts.contains(random.next()) }
        #expect(strangers < 60, "\(strangers) of 100000 strangers taken for ghosts")
    }

    @Test("does not seem new again when the clock has come round, however large the steps")
    func wrap() {
        for step in [4096, 1 << 20, 1 << 30, 1 << 44] as [UInt64] {
            var ghosts = GhostTable(capacity: .mebibytes(4))
            ghosts.insert(1, size: 4096)
            var left: UInt64 = 0
            var seen = 0
            // Sixty-five thousand ticks are some 32 MiB here.
            for i in 0..<20_000 where left < 128 << 20 || i < 40 {
                ghosts.insert(UInt64(i) &+ 1000, size: step)
                left &+= step
                if left > 5 << 20, ghosts.contains(1) { seen += 1 }
            }
            #expect(seen == 0, "with steps of \(step)")
        }
    }

    @Test("comes back from its chunks, and another capacity's chunk is refused")
    func chunks() {
        var ghosts = GhostTable(capacity: .gibibytes(1))
        var random = SplitMix64(seed: 5)
        let marks = (0..<50_000).map { _ in random.next() }
        for mark in marks { ghosts.insert(mark, size: 10_000) }
        var again = GhostTable(capacity: .gibibytes(1), clock: ghosts.clock)
        var other = GhostTable(capacity: .gibibytes(2))
        var taken = 0
        while let chunk = ghosts.takeChunks(1).first {
            // With eight bytes before it and LMDB's sixteen on one page.
            #expect(chunk.bytes.count <= 4096 - 16 - 8)
            let isLoaded = again.load(chunk.index, chunk.bytes.span)
            #expect(isLoaded)
            let isMisread = other.load(chunk.index, chunk.bytes.span)
            #expect(!isMisread)
            let short = Array(chunk.bytes.dropLast())
            let isCut = again.load(chunk.index, short.span)
            #expect(!isCut)
            ghosts.chunksWritten()
            taken += 1
        }
        #expect(taken == ghosts.chunkCount)
        #expect(!ghosts.differsFromFile)
        #expect(marks.allSatisfy { ghosts.contains($0) == again.contains($0) })
        #expect(again.count == ghosts.count)
        let nothing: [UInt8] = []
        let beyond = again.load(ghosts.chunkCount, nothing.span)
        #expect(!beyond)
    }

    @Test("a chunk that was taken and never written is taken again")
    func notWritten() {
        var ghosts = GhostTable(capacity: .mebibytes(1))
        ghosts.insert(1, size: 1)
        let first = ghosts.takeChunks(9)
        #expect(ghosts.differsFromFile)
        let second = ghosts.takeChunks(9)
        #expect(first.map(\.index) == second.map(\.index))
        #expect(first.map(\.bytes) == second.map(\.bytes))
        #expect(first.count == 1)
        ghosts.chunksWritten()
        let third = ghosts.takeChunks(9)
        #expect(third.isEmpty)
    }
}

@Suite("The rules of admission")
struct AdmissionRulesTests {
    struct Case: Sendable {
        var rules: AdmissionRules
        var length: UInt64?
        var isKnown: Bool
        var expected: AdmissionRules.Verdict
    }

    private static let large = AdmissionRules(largeFrom: .mebibytes(1))
    private static let choosy = AdmissionRules(takesOnceSeen: false)
    private static let both = AdmissionRules(largeFrom: .mebibytes(1), takesOnceSeen: false)

    @Test(
        "turn away what is asked for once, or is large and asked for once",
        arguments: [
            Case(rules: .init(), length: nil, isKnown: false, expected: .admit(below: nil)),
            Case(rules: .init(), length: .max, isKnown: false, expected: .admit(below: nil)),
            Case(rules: large, length: 1 << 20, isKnown: false, expected: .refuse(.largeSeenOnce)),
            Case(rules: large, length: (1 << 20) - 1, isKnown: false, expected: .admit(below: nil)),
            Case(rules: large, length: nil, isKnown: false, expected: .admit(below: .mebibytes(1))),
            Case(rules: large, length: 1 << 20, isKnown: true, expected: .admit(below: nil)),
            Case(rules: large, length: nil, isKnown: true, expected: .admit(below: nil)),
            Case(rules: choosy, length: 1, isKnown: false, expected: .refuse(.seenOnce)),
            Case(rules: choosy, length: nil, isKnown: false, expected: .refuse(.seenOnce)),
            Case(rules: choosy, length: 1, isKnown: true, expected: .admit(below: nil)),
            Case(rules: both, length: 1 << 30, isKnown: false, expected: .refuse(.largeSeenOnce)),
            Case(rules: both, length: 1, isKnown: false, expected: .refuse(.seenOnce)),
        ])
    func verdict(_ c: Case) {
        #expect(c.rules.judge(length: c.length, isKnown: c.isKnown) == c.expected)
    }

    @Test("look at nothing where they let everything in")
    func selective() {
        #expect(!AdmissionRules().isSelective)
        #expect(Self.large.isSelective)
        #expect(Self.choosy.isSelective)
    }
}
