import LarderHTTP
import LarderLMDB
import Testing

@testable import LarderDisk

@Suite("A disk that fails")
struct HealthTests {
    private let start = Timestamp(seconds: 1_700_000_000)

    private func after(_ seconds: Int) -> Timestamp { self.start + .seconds(seconds) }

    @Test("is left alone twice as long after each failed try, up to five minutes")
    func backOff() {
        var health = DiskHealth(firstPause: .seconds(10))
        var now = self.start
        var pauses: [Duration] = []
        for _ in 0..<8 {
            let (_, until) = health.failed(at: now)
            pauses.append(until - now)
            #expect(!health.isHealthy(at: now))
            #expect(health.isHealthy(at: until))
            now = until
        }
        #expect(pauses == [10, 20, 40, 80, 160, 300, 300, 300].map { .seconds($0) })
    }

    @Test("fails in what is under way without a longer pause for that")
    func burst() {
        var health = DiskHealth(firstPause: .seconds(10))
        for second in 0..<5 {
            let (isFirst, until) = health.failed(at: self.after(second))
            #expect(isFirst == (second == 0))
            #expect(until == self.after(second + 10))
        }
    }

    @Test("is said to fail once and to work again once, and then begins anew")
    func saidOnce() {
        var health = DiskHealth(firstPause: .seconds(10))
        #expect(health.worked(at: self.start) == false)
        #expect(health.failed(at: self.start).isFirst)
        // What was under way proves nothing.
        #expect(health.worked(at: self.after(5)) == false)
        #expect(health.failed(at: self.after(11)).isFirst == false)
        #expect(health.worked(at: self.after(40)) == true)
        #expect(health.worked(at: self.after(41)) == false)
        #expect(health == DiskHealth(firstPause: .seconds(10)))
    }

    @Test("is tried again where the clock was set back by more than a pause")
    func clockSetBack() {
        var health = DiskHealth(firstPause: .seconds(10))
        _ = health.failed(at: self.after(100_000))
        #expect(!health.isHealthy(at: self.after(100_001)))
        #expect(health.isHealthy(at: self.start))
    }
}

@Suite("A file in trouble")
struct FileMendingTests {
    private let start = Timestamp(seconds: 1_700_000_000)
    private let damage = FileTrouble.damaged(LMDBError(.corrupted, operation: "test"))

    @Test("is replaced at once, and not again within a minute but after a pause")
    func spacing() {
        var mending = FileMending()
        #expect(mending.found(self.damage, at: self.start) == .mend(self.damage))
        mending.mended(byNewFile: true, at: self.start)
        #expect(mending.trouble == nil)
        let soon = self.start + .seconds(59)
        #expect(mending.found(self.damage, at: soon) == .goWithout(self.damage))
        mending.failed(until: soon + .seconds(10))
        #expect(mending.due(at: soon + .seconds(9)) == .nothing)
        #expect(mending.due(at: soon + .seconds(10)) == .mend(self.damage))
        mending.mended(byNewFile: true, at: soon + .seconds(10))
        #expect(mending.due(at: soon + .seconds(10)) == .nothing)
        let later = soon + .seconds(70)
        #expect(mending.found(self.damage, at: later) == .mend(self.damage))
    }

    @Test("is mended though the clock was set back meanwhile")
    func clockSetBack() {
        var mending = FileMending()
        let later = self.start + .seconds(1_000_000)
        #expect(mending.found(self.damage, at: later) == .mend(self.damage))
        mending.failed(until: later + .seconds(10))
        #expect(mending.due(at: later) == .nothing)
        #expect(mending.due(at: self.start) == .mend(self.damage))
    }

    @Test("that was deleted is replaced however often that happens")
    func gone() {
        var mending = FileMending()
        for second in 0..<3 {
            let now = self.start + .seconds(second)
            #expect(mending.found(.gone, at: now) == .mend(.gone))
            mending.mended(byNewFile: true, at: now)
        }
    }

    @Test("and opened again does not count as a new file")
    func reopened() {
        var mending = FileMending()
        let panic = FileTrouble.panicked(LMDBError(.panic, operation: "test"))
        #expect(mending.found(panic, at: self.start) == .mend(panic))
        mending.mended(byNewFile: false, at: self.start)
        #expect(mending.found(self.damage, at: self.start) == .mend(self.damage))
    }

    @Test("that was opened again in vain is left for a while, or replaced where it is to blame")
    func reopenedInVain() {
        let panic = FileTrouble.panicked(LMDBError(.panic, operation: "test"))
        let failure = LMDBError(.badTransaction, operation: "test")
        for (trouble, expected) in [
            (panic, FileMending.Action.goWithout(panic)),
            (.panicked(failure), .mend(.damaged(failure))),
        ] {
            var mending = FileMending()
            #expect(mending.found(trouble, at: self.start) == .mend(trouble))
            mending.mended(byNewFile: false, at: self.start)
            #expect(mending.found(trouble, at: self.start + .seconds(59)) == expected)
            mending.mended(byNewFile: false, at: self.start + .seconds(59))
            #expect(mending.found(trouble, at: self.start + .seconds(200)) == .mend(trouble))
        }
    }

    @Test("is told from a disk in trouble by the error", arguments: LMDBError.Code.allCases)
    func kinds(_ code: LMDBError.Code) {
        let error = LMDBError(code, operation: "test")
        let expected: FileTrouble? =
            switch code {
            case .corrupted, .notLMDB, .versionMismatch: .damaged(error)
            case .mapResized:
                .damaged(LMDBError(.corrupted, operation: "a last page beyond the map"))
            case .panic, .badTransaction: .panicked(error)
            default: nil
            }
        #expect(FileTrouble(error) == expected)
    }
}
