import ArgumentParser
import LarderConfig
import LarderControl

/// The verb `larder cache list`.
struct CacheList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List what is stored.")

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    @Flag(help: "One JSON object a line.")
    var json = false

    func run() async throws {
        let view = try CacheView(self.options, self.session)
        var text = CacheListText(width: Output.width)
        func write(_ row: CacheRow) throws {
            if self.json { return try Output.line(try JSONLine.of(row)) }
            for line in text.add(row) { try Output.line(line) }
        }
        // What is in memory is bounded by the memory tier; the disk is not held.
        var memory: [ObjectName: MemoryObject] = [:]
        // A running proxy that has no listener for this session knows nothing of it.
        do {
            _ = try view.ask(.listMemory(session: view.session.name.text)) { reply in
                guard case .object(let object) = reply else { return true }
                if object.isOnDisk {
                    memory[ObjectName(CacheRow(object))] = object
                } else {
                    try write(CacheRow(object))
                }
                return true
            }
        } catch let refusal as ControlRefusal where refusal.failure.code == .noSuchSession {}
        try view.disk?.forEach { row in
            var row = row
            if let twin = memory[ObjectName(row)] {
                row.tier = .both
                row.hits = max(row.hits, twin.hits)
            }
            try write(row)
            return true
        }
        for line in text.finish() { try Output.line(line) }
    }
}

/// Tells a response in both tiers, nearly always: variants of one URL and one size look the same.
struct ObjectName: Hashable {
    private var partition: String
    private var method: String
    private var url: String
    private var bytes: UInt64
    /// A part has the length of its whole.
    private var isPartial: Bool

    init(_ row: CacheRow) {
        self.partition = row.partition
        self.method = row.method
        self.url = row.url
        self.bytes = row.bytes
        self.isPartial = row.partial != nil
    }
}

extension CachePartial {
    init(_ partial: PartialObject) {
        self.init(
            ranges: partial.ranges.map { CacheRange(first: $0.lowerBound, last: $0.upperBound) },
            storedBytes: partial.ranges.reduce(0) { sum, range in
                sum &+ (range.upperBound - range.lowerBound) &+ 1
            },
            completeLength: partial.completeLength)
    }
}

extension CacheRow {
    init(_ object: MemoryObject) {
        self.init(
            partition: object.partition, method: object.method, url: object.url,
            status: object.status, bytes: object.bytes, ageMilliseconds: object.ageMilliseconds,
            freshForMilliseconds: object.freshForMilliseconds, hits: object.hits, tier: .memory,
            partial: object.partial.map { CachePartial($0) })
    }
}
