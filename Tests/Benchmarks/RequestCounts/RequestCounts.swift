import Dispatch
import Foundation

/// Counts allocations and instructions of a request, and compares them with what is allowed.
///
///     RequestCounts THRESHOLDS [--update]
///     RequestCounts --only ROW COUNT      (what valgrind runs)
///
/// Times depend on the machine and on what else it does; these figures hardly do.
@main
struct RequestCounts {
    // Not an async one: valgrind 3.19 faults when the main thread leaves itself to Dispatch.
    static func main() {
        let ended = DispatchSemaphore(value: 0)
        // Both want a process that has one thread yet. The load is begun first: the counter counts
        // the processes that are begun after it, too.
        let load = Result { try Load() }
        let counter = InstructionCounter.find()
        Task.detached {
            defer { ended.signal() }
            do {
                try await Self.run(
                    Array(CommandLine.arguments.dropFirst()), counter, try load.get())
            } catch {
                Self.say("RequestCounts: \(error)")
                exit(1)
            }
        }
        ended.wait()
    }

    private static func say(_ text: String) {
        FileHandle.standardError.write(Data("\(text)\n".utf8))
    }

    private static func run(
        _ arguments: [String], _ counter: InstructionCounter, _ load: Load
    ) async throws {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "request-counts-\(ProcessInfo.processInfo.processIdentifier)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        if arguments.count == 3, arguments[0] == "--only", let row = Row(rawValue: arguments[1]),
            let count = UInt64(arguments[2])
        {
            try await Self.only(row, count, load, directory)
        } else if arguments.count == 1 || arguments.count == 2 && arguments[1] == "--update" {
            let counting = Counting(counter: counter, directory: directory, load: load)
            let failed = try await Self.compare(
                counting, Thresholds(URL(filePath: arguments[0])), updates: arguments.count == 2)
            if failed { throw Load.Failed(description: "more than is allowed") }
        } else {
            throw Load.Failed(description: "usage: RequestCounts THRESHOLDS [--update]")
        }
    }

    private static func only(
        _ row: Row, _ count: UInt64, _ load: Load, _ directory: URL
    ) async throws {
        var load = load
        let proxy = try await Proxy.start(
            in: directory.appending(path: "cache"), memory: row.memory)
        try load.prepare(row, port: proxy.port)
        try load.run(row, count: count, port: proxy.port)
        await proxy.flush()
        await proxy.stop()
    }

    /// Prints a table; returns whether something is above what is allowed.
    private static func compare(
        _ counting: Counting, _ given: Thresholds, updates: Bool
    ) async throws -> Bool {
        var counting = counting
        var thresholds = given
        var complaints: [String] = []
        print("A request of one client, one after the other; \(counting.counter.description).\n")
        print("| | allocations | allowed | instructions | allowed |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for row in Row.allCases {
            let figures = try await counting.figures(of: row)
            if updates { thresholds.update(row, by: figures) }
            let allowed = thresholds.allowed(row)
            let cells = [
                figures.allocations, allowed.allocations, figures.instructions,
                allowed.instructions,
            ]
            print("| \(row.title) | \(cells.map(Thresholds.text).joined(separator: " | ")) |")
            complaints += thresholds.complaints(row, figures)
        }
        if updates { try thresholds.write() }
        for complaint in complaints { Self.say("RequestCounts: \(complaint)") }
        return !complaints.isEmpty
    }
}
