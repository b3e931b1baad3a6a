import CAllocationCounts
import CRequestLoad
import Foundation

/// What a request costs, in things that can be counted.
struct Figures: Codable {
    /// Calls of malloc and its kin, in all threads.
    var allocations: Double?
    /// Outside of the kernel, in all threads.
    var instructions: Double?
}

/// How instructions are counted here.
enum InstructionCounter: Sendable {
    /// The processor's, by perf_event_open(2).
    case hardware(Int32)
    /// valgrind's callgrind; this program is run by it, twice for each row.
    case valgrind(String)
    case none

    /// To be called before there is a second thread.
    static func find() -> InstructionCounter {
        let descriptor = instruction_counter_open()
        if descriptor >= 0 { return .hardware(descriptor) }
        let folders = ProcessInfo.processInfo.environment["PATH", default: ""].split(separator: ":")
        let valgrind = folders.map { "\($0)/valgrind" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
        return valgrind.map { .valgrind($0) } ?? .none
    }

    var description: String {
        switch self {
        case .hardware: "instructions counted by the processor"
        case .valgrind: "instructions counted by valgrind (no counter of the processor can be used)"
        case .none:
            "instructions not counted: neither the processor's counter nor valgrind can be used"
        }
    }
}

/// Counts in this process.
struct Counting {
    static let requests: UInt64 = 2000
    private static let runs = 5
    /// Requests of each of the two runs whose difference valgrind's count is made of.
    private static let slowRequests: UInt64 = 400

    let counter: InstructionCounter
    let directory: URL
    var load: Load

    /// The median of some runs; before them as many requests as make everything that is kept.
    mutating func figures(of row: Row) async throws -> Figures {
        let proxy = try await Proxy.start(
            in: self.directory.appending(path: "cache-\(row.rawValue)"), memory: row.memory)
        try self.load.prepare(row, port: proxy.port)
        try self.load.run(row, count: Self.requests, port: proxy.port)
        await proxy.flush()
        var allocations: [Double] = []
        var instructions: [Double] = []
        for _ in 0..<Self.runs {
            let before = (allocation_count(), self.hardwareInstructions)
            try self.load.run(row, count: Self.requests, port: proxy.port)
            // What the disk's thread does belongs to the requests that made it necessary.
            if row == .stored { await proxy.flush() }
            let calls = allocation_count() - before.0
            allocations.append(Double(calls) / Double(Self.requests))
            if let end = self.hardwareInstructions, let begin = before.1 {
                instructions.append(Double(end - begin) / Double(Self.requests))
            }
        }
        await proxy.stop()
        var figures = Figures(allocations: Self.median(allocations))
        figures.instructions =
            instructions.isEmpty ? try self.countedByValgrind(row) : Self.median(instructions)
        return figures
    }

    private static func median(_ values: [Double]) -> Double {
        values.sorted()[values.count / 2]
    }

    private var hardwareInstructions: Int64? {
        guard case .hardware(let descriptor) = self.counter else { return nil }
        let value = instruction_counter_read(descriptor)
        return value < 0 ? nil : value
    }

    // MARK: valgrind

    /// What is the same in a run of some requests and in one of twice as many is none of theirs.
    private func countedByValgrind(_ row: Row) throws -> Double? {
        guard case .valgrind(let valgrind) = self.counter else { return nil }
        let once = try self.collected(by: valgrind, row, Self.slowRequests)
        let twice = try self.collected(by: valgrind, row, Self.slowRequests * 2)
        return Double(twice - once) / Double(Self.slowRequests)
    }

    private func collected(by valgrind: String, _ row: Row, _ count: UInt64) throws -> Int {
        let log = self.directory.appending(path: "callgrind-\(row.rawValue)-\(count).log")
        let process = Process()
        process.executableURL = URL(filePath: valgrind)
        process.arguments = [
            "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=\(log.path)",
            CommandLine.arguments[0], "--only", row.rawValue, "\(count)",
        ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        let text = try String(contentsOf: log, encoding: .utf8)
        // "==PID== Collected : 123456"; the process that makes the load writes one, too, first.
        let prefix = "==\(process.processIdentifier)== Collected : "
        let line = text.split(separator: "\n").first { $0.hasPrefix(prefix) }
        guard process.terminationStatus == 0, let line,
            let total = Int(line.dropFirst(prefix.count))
        else {
            throw Load.Failed(description: "\(row.rawValue): valgrind counted nothing")
        }
        return total
    }
}
