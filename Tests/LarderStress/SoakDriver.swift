import Foundation
import Glibc
import LarderDisk
import LarderHTTP
import LarderPolicy
import SeededNumbers
import Synchronization

/// Drives a soak: who does what when, and what must hold all the while.
final class SoakDriver: Sendable {
    private struct Counts: Sendable {
        var restarts = 0
        var kills = 0
        var listings = 0
        var purges = 0
        var isPurging = false
        var commandFailures = 0
        var lastCommandFailure = ""
        var longestStart = Duration.zero
        var figures = ProxyUnderTest.Figures()
        var largestFile: UInt64 = 0
        var running = 0
        /// Times at which the log said that nothing is stored for now.
        var pauses = 0
    }

    private let soak: Soak
    private let proxy: ProxyUnderTest
    private let counts = Mutex(Counts())
    private let begun = ContinuousClock.now
    private let bell = Bell()
    private var options: Soak.Options { self.soak.options }

    /// What a proxy may take of its own, in KiB: heads, bodies on their way, an allocator's slack.
    private static let memoryBound = 256 << 10
    private static let threadBound = 64
    /// Of these 100 are connections to the origin, idle ones included: 96 and libcurl's 4 above them.
    private var descriptorBound: Int { 100 + 32 + 4 * self.options.clients }

    init(_ options: Soak.Options) throws {
        self.soak = try Soak(options)
        self.proxy = try ProxyUnderTest(options, port: self.soak.proxyPort)
    }

    /// - Throws: `Wrong`, for the first thing that must never be.
    func run(_ say: (String) -> Void) throws {
        self.soak.origin.start()
        try self.startProxy()
        for number in 0..<self.options.clients {
            self.onThread {
                Client($0.soak, seed: $0.options.seed &+ UInt64(number) &* 1_000_003).run()
            }
        }
        self.onThread { $0.change() }

        self.onThread { $0.commands() }
        if self.options.library != nil { self.onThread { $0.faults() } }
        let end = self.begun + self.options.length
        var random = SplitMix64(seed: self.options.seed ^ 0xD1CE)
        var nextReport = self.begun + self.options.reportEvery
        var nextEnd = self.begun + self.life(&random)
        while ContinuousClock.now < end, !self.soak.isOver {
            self.soak.pause(until: min(end, nextReport, nextEnd, .now + .seconds(1)))
            try self.check()
            if ContinuousClock.now >= nextReport {
                say(self.report())
                nextReport = nextReport + self.options.reportEvery
            }
            if ContinuousClock.now >= nextEnd {
                try self.restart(random.below(5) < 3 ? SIGKILL : SIGTERM)
                nextEnd = .now + self.life(&random)
            }
        }
        try self.finish(say)
    }

    private func life(_ random: inout SplitMix64) -> Duration {
        self.options.killEvery * (0.3 + 1.4 * Double(random.below(1000)) / 1000)
    }

    private func onThread(_ body: @escaping @Sendable (SoakDriver) -> Void) {
        self.counts.withLock { $0.running += 1 }
        Thread.detachNewThread {
            body(self)
            self.counts.withLock { $0.running -= 1 }
            self.bell.ring()
        }
    }

    private func finish(_ say: (String) -> Void) throws {
        self.soak.stop()
        if self.options.library != nil { try FaultControl(path: self.proxy.faults).set([]) }
        self.bell.wait(until: .now + .seconds(60)) { self.counts.withLock { $0.running == 0 } }
        let line = self.report()
        try self.check()
        try self.proxy.end(SIGTERM)
        try self.judgeFile()
        say(line)
    }

    // MARK: The proxy's lives

    private func startProxy() throws {
        let time = try self.proxy.start()
        self.counts.withLock { $0.longestStart = max($0.longestStart, time) }
        self.soak.serves(true)
    }

    private func restart(_ signal: Int32) throws {
        self.soak.serves(false)
        try self.proxy.end(signal)
        self.counts.withLock { counts in
            counts.restarts += 1
            if signal == SIGKILL { counts.kills += 1 }
        }
        // One that finds no proxy purges the file itself, and a proxy that starts meanwhile is refused.
        self.bell.wait(until: .now + .seconds(60)) { !self.counts.withLock { $0.isPurging } }
        try self.startProxy()
    }

    /// What must hold at every moment.
    private func check() throws {
        if let wrong = self.soak.tally.withLock({ $0.wrong }) { throw Wrong(wrong) }
        if let status = self.proxy.unexpectedEnd {
            throw Wrong("the proxy ended with \(status): \(self.proxy.lastLines)")
        }
        let size = self.proxy.fileBytes
        guard size <= self.options.capacity.bytes else {
            throw Wrong("the file has \(size) bytes")
        }
        for line in self.proxy.takeSurprises() {
            // No run of free pages long enough, or a reader that stands still in a transaction and
            // keeps what was freed since from being used again: then it is tried again later.
            let isPause =
                line.contains("nothing is stored on disk for now")
                && line.contains("MDB_MAP_FULL")
            guard isPause || self.options.library != nil && Self.tellsOfFaults(line) else {
                throw Wrong("the log says: \(line)")
            }
            self.counts.withLock { $0.pauses += 1 }
        }
        let (failures, last) = self.soak.tally.withLock { ($0.failures, $0.lastFailure) }
        guard failures == 0 else { throw Wrong("\(failures) failures, the last: \(last)") }
        let (failed, command) = self.counts.withLock {
            ($0.commandFailures, $0.lastCommandFailure)
        }
        guard failed == 0 else { throw Wrong("a command failed: \(command)") }
        guard let figures = self.proxy.figures() else { return }
        self.counts.withLock { counts in
            counts.figures.formMaximum(figures)
            counts.largestFile = max(counts.largestFile, size)
        }
        guard figures.anonymous <= Self.memoryBound, figures.threads <= Self.threadBound,
            figures.descriptors <= self.descriptorBound
        else { throw Wrong("too much: \(figures)") }
    }

    /// What a proxy may say whose disk fails.
    private static func tellsOfFaults(_ line: String) -> Bool {
        [
            "nothing is stored on disk for now", "caching in memory only",
            // A purge outlives the proxy that the disk did not let write it.
            "responses were removed that could not be taken out of it",
        ].contains { line.contains($0) }
            // What cannot be read is as good as damaged; other damage has no excuse.
            || line.contains("damaged entry dropped") && line.contains("cannot be read: ")
                && line.contains("Input/output error")
    }

    // MARK: What goes on meanwhile

    /// Representations change, those that are asked for most as often as others.
    private func change() {
        var random = SplitMix64(seed: self.options.seed ^ 0xC4A6)
        while !self.soak.isOver {
            self.soak.origin.change(Int(random.below(UInt64(self.options.keys))))
            self.soak.pause(until: .now + .milliseconds(4))
        }
    }

    /// A person looks and purges, and leaves listings standing.
    private func commands() {
        var random = SplitMix64(seed: self.options.seed ^ 0x10_0C)
        while !self.soak.isOver {
            let life = self.soak.waitUntilServing()
            guard life.isServing else { return }
            switch random.below(6) {
            case 0: self.command(["list"], life)
            case 1: self.command(["list", "--json"], life)
            case 2, 3: self.command(["stats", "--json"], life)
            case 4: self.purge(Int(random.below(UInt64(self.options.keys))), life)
            default: self.standstill(life, ends: random.below(2) == 0)
            }
            self.soak.pause(until: .now + .milliseconds(100))
        }
    }

    private func started(_ arguments: [String]) -> Child? {
        try? Child(
            self.options.larder,
            ["cache"] + arguments + ["--config", self.proxy.configuration],
            variables: self.proxy.variables)
    }

    @discardableResult
    private func command(_ arguments: [String], _ life: Soak.Life) -> Bool {
        guard let child = self.started(arguments) else { return false }
        while child.line() != nil {}
        let status = child.wait()
        // A proxy that is ended in its midst may have been asked for something.
        guard status != 0, self.soak.isStillServing(life.number) else {
            self.counts.withLock { $0.listings += 1 }
            return status == 0
        }
        self.counts.withLock { counts in
            counts.commandFailures += 1
            counts.lastCommandFailure = "\(arguments) ended with \(status)"
        }
        return false
    }

    private func purge(_ key: Int, _ life: Soak.Life) {
        self.counts.withLock { $0.isPurging = true }
        defer {
            self.counts.withLock { $0.isPurging = false }
            self.bell.ring()
        }
        guard self.soak.isStillServing(life.number) else { return }
        let version = self.soak.origin.version(key)
        guard self.command(["purge", self.soak.origin.url(key)], life) else { return }
        self.soak.raiseFloor(of: key, to: version)
        self.counts.withLock { $0.purges += 1 }
    }

    /// A listing is stopped in its midst, and goes on or is killed a while later.
    private func standstill(_ life: Soak.Life, ends: Bool) {
        guard let child = self.started(["list", "--json"]) else { return }
        _ = child.line()
        child.signal(SIGSTOP)
        self.soak.pause(until: .now + .milliseconds(700))
        if ends {
            _ = child.kill()
        } else {
            child.signal(SIGCONT)
            while child.line() != nil {}
            let status = child.wait()
            if status != 0, self.soak.isStillServing(life.number) {
                self.counts.withLock { counts in
                    counts.commandFailures += 1
                    counts.lastCommandFailure = "a listing that stood still: \(status)"
                }
            }
        }
        self.counts.withLock { $0.listings += 1 }
    }

    /// The disk fails for a while, in one way after the other, and is well again.
    private func faults() {
        var random = SplitMix64(seed: self.options.seed ^ 0xFA17)
        let kinds: [(FaultControl.Operations, Int32)] = [
            (.write, ENOSPC), (.write, EIO), (.write, 0), (.sync, EIO), (.write, EROFS),
            (.truncate, ENOSPC), (.read, EIO), ([.write, .open], EROFS),
        ]
        guard let control = try? FaultControl(path: self.proxy.faults) else { return }
        while !self.soak.isOver {
            self.soak.pause(until: .now + .milliseconds(300 + Int(random.below(1500))))
            let (operations, error) = kinds[Int(random.below(UInt64(kinds.count)))]
            try? control.set(
                operations, error: error, every: 1 + UInt32(random.below(2) * random.below(4)))
            self.soak.pause(until: .now + .milliseconds(300 + Int(random.below(1200))))
            try? control.set([])
        }
    }

    // MARK: What is said

    private func report() -> String {
        let tally = self.soak.tally.withLock { $0 }
        let counts = self.counts.withLock { $0 }
        let seconds = Int((ContinuousClock.now - self.begun) / .seconds(1))
        var evictions: UInt64 = 0
        if let inspector = try? DiskInspector(directory: self.proxy.cache) {
            evictions = (try? inspector.statistics().evictions) ?? 0
        }
        let hits = tally.requests == 0 ? 0 : tally.hits * 100 / tally.requests
        var line =
            "\(seconds) s: \(tally.requests) requests, \(hits) % hits, \(tally.partial) partial, "
            + "\(tally.bytes >> 20) MiB compared, \(tally.wrong == nil ? 0 : 1) wrong, "
            + "\(tally.failures) failed, \(tally.brokenOff) broken off, "
            + "\(counts.restarts) restarts (\(counts.kills) kills), longest start "
            + "\(Int(counts.longestStart / .milliseconds(1))) ms, \(counts.listings) commands, "
            + "\(counts.purges) purges, file \(counts.largestFile >> 10) of "
            + "\(self.options.capacity.bytes >> 10) KiB, own memory "
            + "\(counts.figures.anonymous >> 10) MiB, peak \(counts.figures.peak >> 10) MiB, "
            + "\(counts.figures.descriptors) descriptors, \(counts.figures.threads) threads, "
            + "\(evictions) evictions, \(counts.pauses) pauses"
        if self.options.library != nil, let faults = try? FaultControl(path: self.proxy.faults) {
            line += ", \(faults.injected) faults"
        }
        return line
    }

    /// All that is left on the disk in the end is what it claims to be.
    private func judgeFile() throws {
        let inspector: DiskInspector
        do throws(StoreError) {
            inspector = try DiskInspector(directory: self.proxy.cache)
        } catch {
            // A disk that fails may have refused the file to the last start, too.
            if error.code == .missing, self.options.library != nil { return }
            throw error
        }
        let prefix = "http://127.0.0.1:\(self.soak.origin.port)/"
        try inspector.forEachObject { object in
            let uri = String(decoding: object.key.bytes, as: UTF8.self)
            guard let key = uri.components(separatedBy: prefix).last.flatMap({ Int($0) }),
                let tag = object.head.fields.string("ETag"),
                let version = UInt64(tag.dropFirst("\"\(key)-".count).dropLast())
            else { throw Wrong("in the file: \(uri)") }
            if object.head.extent != nil { return true }
            var place: UInt64 = 0
            try inspector.readBody(of: object) { piece in
                let isRight = unsafe piece.withUnsafeBytes {
                    unsafe Content.matches($0, key, version, from: place)
                }
                guard isRight else { throw Wrong("in the file: /\(key) \(version) at \(place)") }
                place += UInt64(piece.count)
            }
            guard place == Content.length(key, version) else {
                throw Wrong("in the file: /\(key) \(version) has \(place) bytes")
            }
            return true
        }
    }
}
