import ArgumentParser
import Glibc
import LarderDisk
import LarderHTTP
import LarderLMDB

@main
struct StressCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Treats a cache as badly as a machine can, and judges every byte that it gives.",
        subcommands: [
            Kill.self, Power.self, SoakCommand.self, LoadCommand.self, LookCommand.self,
            HoldCommand.self, PeekCommand.self,
        ])
}

/// A failure: what must never be was.
func fail(_ error: any Error) -> ExitCode {
    let line = Array("wrong: \(error)\n".utf8)
    _ = unsafe Glibc.write(2, line, line.count)
    return ExitCode(1)
}

struct Kill: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Kills a writer at random instants, and reads all that it left.")

    @Option(help: "How many writers are killed.") var rounds: Int?
    @Option(help: "For how long, instead.") var seconds: Int?
    @Option(help: "Repeats a run.") var seed: UInt64 = .random(in: 0 ... .max >> 1)
    @Option(help: "The longest that a writer lives, in milliseconds.") var life = 60
    @Flag(help: "In a capacity so small that entries are evicted.") var small = false

    func run() async throws {
        let killer = Killer(
            rounds: self.rounds ?? (self.seconds == nil ? 100 : .max),
            length: self.seconds.map { .seconds($0) }, seed: self.seed,
            life: .milliseconds(self.life),
            capacity: self.small ? .mebibytes(4) : .mebibytes(256), isSmall: self.small)
        do {
            let report = try await killer.run()
            let openings = report.openings.sorted()
            guard !openings.isEmpty else { throw Wrong("nothing was done") }
            print(
                "kills \(report.kills), operations \(report.operations), "
                    + "acknowledged entries judged \(report.settled), "
                    + "bytes compared \(report.bytes), evictions \(report.evictions), "
                    + "time to open: median \(openings[openings.count / 2]), "
                    + "longest \(openings.last ?? .zero)")
        } catch {
            throw fail(error)
        }
    }
}

struct Power: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Takes the power away at random instants, and reads all that is left.")

    @Option(help: "The library built of scripts/soak.d/disk.c.") var library: String
    @Option(help: "At how many instants.") var cuts = 200
    @Option(help: "Operations of each of six tasks.") var operations = 60
    @Option(help: "Repeats a run.") var seed: UInt64 = .random(in: 0 ... .max >> 1)
    @Flag(help: "Synchronisations fail now and then.") var failsSync = false

    func run() async throws {
        let power = PowerLoss(
            library: self.library, seed: self.seed, cuts: self.cuts, capacity: .mebibytes(4),
            operations: self.operations, failsSync: self.failsSync)
        do {
            let report = try await power.run()
            let behind = report.behind.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            print(
                "cuts \(report.cuts), changes \(report.changes), syncs \(report.syncs), "
                    + "transactions lost: \(behind.joined(separator: ", ")), "
                    + "set aside \(report.setAside), bytes compared \(report.bytes)")
        } catch {
            throw fail(error)
        }
    }
}

struct SoakCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "soak",
        abstract: "Treats a whole proxy so, with clients that compare every byte.")

    @Option(help: "The larder to test.") var larder: String
    @Option(help: "For how long.") var seconds = 60
    @Option(help: "How many clients ask at a time.") var clients = 8
    @Option(help: "How many URLs there are.") var keys = 400
    @Option(help: "The cache's capacity, in MiB.") var capacity: UInt64 = 24
    @Option(help: "The mean life of a proxy, in seconds; most are killed.") var killEvery = 3.0
    @Option(help: "How often figures are said, in seconds.") var reportEvery = 60
    @Option(help: "Repeats a run, as far as a busy machine allows.")
    var seed: UInt64 = .random(in: 0 ... .max >> 1)
    @Option(help: "The library built of scripts/soak.d/disk.c: the disk fails now and then.")
    var library: String?

    func run() async throws {
        do {
            try await Directory.lend(seed: self.seed) { directory in
                try SoakDriver(self.options(directory)).run { sayText($0 + "\n") }
            }
        } catch {
            throw fail(error)
        }
    }

    private func options(_ directory: String) -> Soak.Options {
        var options = Soak.Options(
            larder: self.larder, directory: directory, seed: self.seed,
            length: .seconds(self.seconds))
        options.clients = self.clients
        options.keys = self.keys
        options.capacity = .mebibytes(self.capacity)
        options.killEvery = .seconds(1) * self.killEvery
        options.library = self.library
        options.reportEvery = .seconds(self.reportEvery)
        return options
    }
}

struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load", abstract: "Writes to a cache, and says what.", shouldDisplay: false)

    @Argument var directory: String
    @Option var capacity: UInt64
    @Option var seed: UInt64
    @Option var firstVersion: UInt64
    @Option var operations: Int?
    @Option var keys = 60
    @Option var tasks = 6
    @Option var largest: UInt64 = 3 << 20
    @Flag var quiet = false

    func run() async throws {
        do {
            let store = try StoreJudge.open(self.directory, ByteCount(self.capacity)) { _ in }
            sayText("open\n")
            let isQuiet = self.quiet
            let say = { @Sendable (line: JournalLine) in
                if !isQuiet { sayLine(line) }
            }
            let load = Load(
                keys: self.keys, tasks: self.tasks, seed: self.seed,
                firstVersion: self.firstVersion, operations: self.operations,
                largest: self.largest, say: say)
            try await load.run(store)
            await store.closed()
        } catch {
            throw fail(error)
        }
    }
}

struct HoldCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold", abstract: "Reads from a cache, and stands still in the midst of it.",
        shouldDisplay: false)

    @Argument var directory: String

    func run() async throws {
        let environment = try Environment.open(
            path: self.directory + "/cache.mdb", options: EnvironmentOptions(isReadOnly: true))
        try environment.read { (_) throws(LMDBError) in
            sayText("held\n")
            // Until whoever started it has gone, or ends it.
            while readLine() != nil {}
        }
        environment.close()
    }
}

struct PeekCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "peek", abstract: "Opens a cache for looking, again and again.",
        shouldDisplay: false)

    @Argument var directory: String
    @Option var times = 1000

    func run() async throws {
        do {
            for _ in 0..<self.times {
                _ = try DiskInspector(directory: self.directory).statistics()
            }
        } catch {
            throw fail(error)
        }
    }
}

struct LookCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "look", abstract: "Reads all of a cache, and judges it.", shouldDisplay: false)

    @Argument var directory: String
    @Option var capacity: UInt64

    func run() async throws {
        do {
            let judge = StoreJudge(
                directory: self.directory, capacity: ByteCount(self.capacity))
            let findings = try await judge.look()
            for event in findings.events {
                if case .setAside(_, let reason) = event { print("set aside: \(reason)") }
            }
            print("entries \(findings.entries.count)")
            print("bytes \(findings.bytes)")
            if let first = findings.objections.first {
                print(first)
                throw Wrong(first)
            }
        } catch {
            throw fail(error)
        }
    }
}
