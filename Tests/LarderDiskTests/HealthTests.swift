import LarderHTTP
import LarderLMDB
import Testing

@testable import LarderDisk

@Suite("A disk that fails")
struct HealthTests {
    /// What happens so many seconds after the start.
    enum Step: Sendable { case fails(Int), stores(Int), mended(Int) }
    enum Told: Sendable, Equatable { case failed, failedAgain, recovered, settled }

    private let start = Timestamp(seconds: 1_700_000_000)
    private let error = StoreError(.noSpace, path: "/cache.mdb", cause: "full", remedy: "free some")

    private func after(_ seconds: Int) -> Timestamp { self.start + .seconds(seconds) }

    private func told(_ step: Step, _ health: inout DiskHealth) -> Told? {
        let event: DiskEvent? =
            switch step {
            case .fails(let second): health.failed(self.error, at: self.after(second)).event
            case .stores(let second): health.worked(at: self.after(second))
            case .mended(let second): health.mended(at: self.after(second))
            }
        guard let event else { return nil }
        switch event {
        case .failed(let error) where error == self.error: return .failed
        case .failedAgain(let error) where error == self.error: return .failedAgain
        case .recovered: return .recovered
        case .settled: return .settled
        default:
            Issue.record("\(step) told \(event)")
            return nil
        }
    }

    @Test("is left alone twice as long after each failed try, up to five minutes")
    func backOff() {
        var health = DiskHealth(firstPause: .seconds(10))
        var now = self.start
        var pauses: [Duration] = []
        for _ in 0..<8 {
            let (_, until) = health.failed(self.error, at: now)
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
            let (event, until) = health.failed(self.error, at: self.after(second))
            #expect((event != nil) == (second == 0))
            #expect(until == self.after(second + 10))
        }
    }

    @Test(
        "is said to fail once, however often it recovers for a while, and to be well when that lasts",
        arguments: [
            ([.stores(0), .mended(1)], [nil, nil]),
            // What was under way proves nothing.
            (
                [.fails(0), .stores(5), .fails(11), .stores(40), .stores(41)],
                [.failed, nil, nil, .recovered, nil]
            ),
            // As a disk that is full: every ten seconds.
            (
                [.fails(0), .stores(10), .fails(11), .fails(12), .stores(22), .fails(23)],
                [.failed, .recovered, .failedAgain, nil, .recovered, .failedAgain]
            ),
            (
                [.fails(0), .stores(10), .stores(609), .stores(610), .stores(1_300)],
                [.failed, .recovered, nil, .settled, nil]
            ),
            // The calm begins anew with each recovery.
            (
                [.fails(0), .stores(10), .fails(500), .stores(510), .stores(611), .stores(1_110)],
                [.failed, .recovered, .failedAgain, .recovered, nil, .settled]
            ),
            // One after the other is two.
            (
                [.fails(0), .stores(10), .stores(610), .fails(611)],
                [.failed, .recovered, .settled, .failed]
            ),
            // Nothing was stored in between, and the former one was over nevertheless.
            ([.fails(0), .stores(10), .fails(610)], [.failed, .recovered, .failed]),
            (
                [.fails(0), .mended(1), .mended(2), .fails(3), .mended(4), .stores(604)],
                [.failed, .recovered, nil, .failedAgain, .recovered, .settled]
            ),
            // The clock was set back.
            (
                [.fails(5_000), .stores(5_010), .stores(0), .stores(599), .stores(600)],
                [.failed, .recovered, nil, nil, .settled]
            ),
        ] as [([Step], [Told?])])
    func news(_ steps: [Step], _ expected: [Told?]) {
        var health = DiskHealth(firstPause: .seconds(10))
        var told: [Told?] = []
        for step in steps { told.append(self.told(step, &health)) }
        #expect(told == expected)
    }

    @Test("says each cause once in a trouble, as each has a remedy of its own")
    func causes() {
        var health = DiskHealth(firstPause: .seconds(10))
        let other = StoreError(
            .notWritable, path: "/cache.mdb", cause: "read-only", remedy: "mount it anew")
        #expect(health.failed(self.error, at: self.start).event == .failed(self.error))
        #expect(health.failed(other, at: self.after(1)).event == .failed(other))
        #expect(health.failed(self.error, at: self.after(2)).event == nil)
        #expect(health.worked(at: self.after(30)) == .recovered)
        #expect(health.failed(other, at: self.after(40)).event == .failedAgain(other))
        #expect(health.worked(at: self.after(60)) == .recovered)
        #expect(health.failed(other, at: self.after(660)).event == .failed(other))
    }

    @Test("begins with a short pause once it has recovered, and anew when that has lasted")
    func anew() {
        var health = DiskHealth(firstPause: .seconds(10))
        _ = health.failed(self.error, at: self.start)
        #expect(health.failed(self.error, at: self.after(10)).until == self.after(30))
        #expect(health.worked(at: self.after(30)) == .recovered)
        #expect(health.failed(self.error, at: self.after(31)).until == self.after(41))
        #expect(health.worked(at: self.after(41)) == .recovered)
        #expect(health != DiskHealth(firstPause: .seconds(10)))
        #expect(health.worked(at: self.after(641)) == .settled)
        #expect(health == DiskHealth(firstPause: .seconds(10)))
    }

    @Test("tells once a trouble that what was removed is not kept")
    func removals() {
        var health = DiskHealth(firstPause: .seconds(10))
        func tells() -> [Bool] { [health.tellsOfUnkeptRemoval(), health.tellsOfUnkeptRemoval()] }
        #expect(tells() == [true, false])
        _ = health.failed(self.error, at: self.start)
        _ = health.worked(at: self.after(10))
        _ = health.failed(self.error, at: self.after(20))
        #expect(tells() == [false, false])
        _ = health.worked(at: self.after(30))
        _ = health.worked(at: self.after(630))
        #expect(tells() == [true, false])
        _ = health.failed(self.error, at: self.after(640))
        _ = health.worked(at: self.after(650))
        _ = health.failed(self.error, at: self.after(1_250))
        #expect(tells() == [true, false])
        // Mended at once, before it could be said to fail.
        health = DiskHealth(firstPause: .seconds(10))
        #expect(tells() == [true, false])
        #expect(health.mended(at: self.start) == nil)
        #expect(tells() == [true, false])
    }

    @Test("is tried again where the clock was set back by more than a pause")
    func clockSetBack() {
        var health = DiskHealth(firstPause: .seconds(10))
        _ = health.failed(self.error, at: self.after(100_000))
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

    @Test(
        "whose names lead elsewhere is seen to however often that happens",
        arguments: [.gone, .lockedOut, .unlisted] as [FileTrouble])
    func gone(_ trouble: FileTrouble) {
        var mending = FileMending()
        for second in 0..<3 {
            let now = self.start + .seconds(second)
            #expect(mending.found(trouble, at: now) == .mend(trouble))
            mending.mended(byNewFile: trouble == .gone, at: now)
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
