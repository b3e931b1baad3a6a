import Glibc
import LarderHTTP
import LarderLMDB

/// What the process has used up to a moment.
struct Usage {
    var wall = ContinuousClock.now
    /// Seconds of processor time, of the program and of the kernel for it.
    var processor: Double
    /// The same of the thread that writes to the store alone; 0 where there is none.
    var writer: Double

    init() {
        var usage = rusage()
        _ = unsafe getrusage(0, &usage)  // RUSAGE_SELF
        self.processor =
            Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
        self.writer = Self.processorTime(ofThread: "larder-write")
    }

    func since(_ earlier: Usage) -> (wall: Double, processor: Double, writer: Double) {
        (
            (self.wall - earlier.wall).seconds, self.processor - earlier.processor,
            self.writer - earlier.writer
        )
    }

    /// From `schedstat` (proc(5)), whose first number is nanoseconds on a processor.
    private static func processorTime(ofThread name: String) -> Double {
        guard let folder = unsafe opendir("/proc/self/task") else { return 0 }
        defer { _ = unsafe closedir(folder) }
        while let entry = unsafe readdir(folder) {
            let id = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            guard firstLine("/proc/self/task/\(id)/comm") == name,
                let text = firstLine("/proc/self/task/\(id)/schedstat")?.split(separator: " "),
                let first = text.first, let nanoseconds = Double(first)
            else { continue }
            return nanoseconds / 1e9
        }
        return 0
    }
}

extension Duration {
    var seconds: Double {
        let (seconds, attoseconds) = self.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    var milliseconds: Double { self.seconds * 1e3 }
}

func lines(_ path: String) -> [String] {
    guard let file = unsafe fopen(path, "re") else { return [] }
    defer { unsafe _ = fclose(file) }
    var line: UnsafeMutablePointer<CChar>?
    var room = 0
    defer { unsafe free(line) }
    var found: [String] = []
    while unsafe getline(&line, &room, file) > 0 {
        if let text = unsafe line.map({ unsafe String(cString: $0) }) {
            found.append(String(text.prefix { $0 != "\n" }))
        }
    }
    return found
}

func firstLine(_ path: String) -> String? { lines(path).first }

/// `VmRSS`, `RssAnon` and so on, in KiB.
func memory() -> [String: UInt64] {
    var found: [String: UInt64] = [:]
    for line in lines("/proc/self/status") {
        let parts = line.split(whereSeparator: { $0 == ":" || $0 == "\t" || $0 == " " })
        if parts.count >= 2, let number = UInt64(parts[1]) { found[String(parts[0])] = number }
    }
    return found
}

var loadAverage: String {
    firstLine("/proc/loadavg")?.split(separator: " ").first.map(String.init) ?? "?"
}

/// The pages that LMDB may use again.
struct FreeList {
    var records: UInt64 = 0
    var pages: UInt64 = 0
    /// Pages in the longest record: as many as one transaction freed.
    var longestRecord: UInt64 = 0
    /// Free pages by the length of the run that they lie in: 1, 2 to 3, 4 to 15, 16 and more.
    var runs: [UInt64] = [0, 0, 0, 0]

    /// A record is an `MDB_IDL`: the number of pages, then their numbers, each in 8 bytes.
    init(_ environment: Environment) throws {
        var numbers: [UInt64] = []
        var records: UInt64 = 0
        var longest: UInt64 = 0
        try environment.read { (transaction) throws(LMDBError) in
            try transaction.withCursor(.freePages) { (cursor) throws(LMDBError) in
                let visit = { (_: Span<UInt8>, value: Span<UInt8>) -> Bool in
                    records += 1
                    let before = numbers.count
                    unsafe value.withUnsafeBytes { bytes in
                        for place in stride(from: 8, to: bytes.count - 7, by: 8) {
                            let number = unsafe bytes.loadUnaligned(
                                fromByteOffset: place, as: UInt64.self)
                            numbers.append(number)
                        }
                    }
                    longest = max(longest, UInt64(numbers.count - before))
                    return true
                }
                var goesOn = try cursor.first(visit) ?? false
                while goesOn { goesOn = try cursor.next(visit) ?? false }
            }
        }
        self.records = records
        self.longestRecord = longest
        self.count(numbers.sorted())
    }

    private mutating func count(_ numbers: [UInt64]) {
        self.pages = UInt64(numbers.count)
        var length: UInt64 = 0
        for (index, number) in numbers.enumerated() {
            length += 1
            if index + 1 < numbers.count, numbers[index + 1] == number + 1 { continue }
            self.runs[length == 1 ? 0 : length < 4 ? 1 : length < 16 ? 2 : 3] += length
            length = 0
        }
    }
}

extension Double {
    /// With so many digits behind the point.
    func text(_ digits: Int = 1) -> String {
        var buffer = [CChar](repeating: 0, count: 64)
        _ = unsafe withVaList([self]) { unsafe vsnprintf(&buffer, 64, "%.\(digits)f", $0) }
        return String(
            decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

extension WriteTimes.Distribution {
    /// Median, 99 of 100, longest, in milliseconds.
    var text: String {
        "\(self.quantile(0.5).milliseconds.text(2))/\(self.quantile(0.99).milliseconds.text(1))/"
            + self.longest.milliseconds.text(1)
    }
}
