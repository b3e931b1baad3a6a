import Glibc
import LarderDisk
import LarderHTTP
import LarderLMDB
import LarderStore

extension StoreBench {
    /// Stores so many responses, or so many bytes.
    static func fill(_ options: Options) async throws {
        let store = try openStore(options)
        let environment = try environment(options)
        let filler = Filler(store, streams: options.streams)
        let before = Usage()
        let count = await filler.fill(
            from: 0, sizes: { options.pattern.size(of: $0, phase: 0, bound: bound(options)) },
            until: { number, bytes in
                options.bytes > 0 ? bytes >= options.bytes : number >= options.objects
            })
        print(WriteLine.heading)
        print(
            try WriteLine(
                name: "fill", since: before, filler.outcomes, Filler.Outcomes(), environment,
                store, options))
        print("numbers: \(count)")
        await close(store)
    }

    /// Writes the capacity over and over; a line for each time.
    static func churn(_ options: Options) async throws {
        let store = try openStore(options)
        let environment = try environment(options)
        let filler = Filler(store, streams: options.streams)
        var number: UInt64 = 0
        var last = Filler.Outcomes()
        print(WriteLine.heading)
        for turn in 0..<options.capacities {
            let before = Usage()
            number = await filler.fill(
                from: number,
                sizes: { options.pattern.size(of: $0, phase: turn, bound: bound(options)) },
                until: { _, bytes in bytes >= options.capacity.bytes })
            let outcomes = filler.outcomes
            print(
                try WriteLine(
                    name: "\(turn + 1)", since: before, outcomes, last, environment, store,
                    options))
            // A long run is looked at as it goes, also through a pipe.
            _ = fflush(nil)
            last = outcomes
        }
        await close(store)
    }
}

/// A line of a table: what some writing cost, and what the file is like after it.
struct WriteLine: CustomStringConvertible {
    var description: String

    static let heading = """
        | what | objects | MiB | wall s | MiB/s | writer µs/object | writer µs/MiB | CPU s | \
        transactions | ms p50/p99/max | commit ms p50/p99/max | no room | file/bound MiB | used % | \
        free pages | records | longest | runs 1/2–3/4–15/16+ | RSS/peak MiB | load | not stored |
        | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | \
        --- | --- | --- | --- | --- | --- |
        """

    init(
        name: String, since before: Usage, _ outcomes: Filler.Outcomes, _ last: Filler.Outcomes,
        _ environment: Environment, _ store: DiskStore, _ options: Options
    ) throws {
        let used = Usage().since(before)
        let times = environment.writeTimes.take()
        let free = try FreeList(environment)
        let objects = outcomes.visible - last.visible
        let mebibytes = Double(outcomes.bytes - last.bytes) / Double(1 << 20)
        let statistics = store.statistics()
        let memory = memory()
        let capacity = Double(options.capacity.bytes)
        var notStored = outcomes.abandoned.map { "\($0.key.rawValue) \($0.value)" }
        if outcomes.refused > 0 { notStored.append("refused \(outcomes.refused)") }
        let cells = [
            name, "\(objects)", mebibytes.text(0), used.wall.text(1),
            (mebibytes / used.wall).text(0), (used.writer * 1e6 / Double(max(1, objects))).text(1),
            (used.writer * 1e6 / max(1, mebibytes)).text(0), used.processor.text(1),
            "\(times.transactions.count)", times.transactions.text, times.commits.text,
            "\(times.withoutRoom)",
            "\(try environment.fileSize() >> 20)/\(options.capacity.bytes >> 20)",
            (Double(statistics.disk?.bytes ?? 0) / capacity * 100).text(1), "\(free.pages)",
            "\(free.records)", "\(free.longestRecord)",
            free.runs.map { "\($0)" }.joined(separator: "/"),
            "\((memory["VmRSS"] ?? 0) >> 10)/\((memory["VmHWM"] ?? 0) >> 10)", loadAverage,
            notStored.sorted().joined(separator: ", "),
        ]
        self.description = "| " + cells.joined(separator: " | ") + " |"
    }
}
