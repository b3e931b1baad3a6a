import Foundation
import Glibc
import LarderDisk
import LarderHTTP
import SeededNumbers

/// Takes the power away from a disk under a cache, at many instants, and judges what is left.
struct PowerLoss {
    var library: String
    var seed: UInt64
    var cuts: Int
    var capacity: ByteCount
    /// Operations of each of the writer's tasks.
    var operations: Int
    /// Whether synchronisations fail now and then.
    var failsSync = false

    struct Report {
        var cuts = 0
        var changes = 0
        var syncs = 0
        /// How many transactions behind the last one the state was that was found.
        var behind: [UInt64: Int] = [:]
        var setAside = 0
        var bytes: UInt64 = 0
    }

    func run() async throws -> Report {
        try await Directory.lend(seed: self.seed) { try await self.run(in: $0) }
    }

    private func run(in directory: String) async throws -> Report {
        let log = try self.record(in: directory)
        var report = Report()
        report.changes = log.changes.count
        report.syncs = log.changes.count { if case .sync = $0 { true } else { false } }
        var random = SplitMix64(seed: self.seed)
        let points = (0..<self.cuts).map { _ in
            1 + Int(random.below(UInt64(max(1, log.changes.count))))
        }.sorted()
        var disk = FailingDisk(log, seed: self.seed)
        for point in points {
            disk.advance(to: point)
            let last = Meta.last(in: disk.current)
            let image = disk.afterPowerFailure(&random)
            let found = try await self.judge(image, in: directory, at: point, &report)
            report.cuts += 1
            guard let found else { continue }
            let behind = (last?.transaction ?? 0) &- found
            report.behind[behind, default: 0] += 1
            // The state of the last commit, or of the one before it.
            guard behind <= 1 else {
                throw Wrong("cut \(point): transaction \(found) of \(last?.transaction ?? 0)")
            }
        }
        return report
    }

    /// Runs a writer on a disk that keeps a log.
    private func record(in directory: String) throws -> DiskLog {
        let path = directory + "/log"
        var variables = ["LD_PRELOAD": self.library, "LARDER_DISK_LOG": path]
        if self.failsSync {
            let faults = directory + "/faults"
            try FaultControl(path: faults).set(.sync, error: EIO, every: 7)
            variables["LARDER_DISK_FAULTS"] = faults
        }
        let child = try Child(
            Child.ownPath,
            [
                "load", directory + "/cache", "--capacity", "\(self.capacity.bytes)", "--seed",
                "\(self.seed)", "--first-version", "1000000", "--operations",
                "\(self.operations)", "--largest", "400000", "--keys", "120",
            ], variables: variables)
        while child.line() != nil {}
        let status = child.wait()
        guard status == 0 else { throw Wrong("the writer ended with \(status)") }
        return try DiskLog(path: path)
    }

    /// The transaction that was found in an image, by a process of its own; nil where there was no
    /// file to speak of yet.
    private func judge(
        _ image: [UInt8], in directory: String, at point: Int, _ report: inout Report
    ) async throws -> UInt64? {
        let place = directory + "/image"
        _ = unsafe mkdir(place, 0o700)
        for name in try FileManager.default.contentsOfDirectory(atPath: place) {
            _ = unsafe unlink(place + "/" + name)
        }
        try Data(image).write(to: URL(fileURLWithPath: place + "/cache.mdb"))
        let meta = Meta.last(in: image)
        let child = try Child(
            Child.ownPath, ["look", place, "--capacity", "\(self.capacity.bytes)"])
        var verdict: [String] = []
        while let line = child.line() { verdict.append(line) }
        let status = child.wait()
        guard status == 0 else {
            try Data(image).write(to: URL(fileURLWithPath: directory + "/bad.mdb"))
            throw Wrong("cut \(point): the judge ended with \(status): \(verdict)")
        }
        for line in verdict {
            if line.hasPrefix("set aside") {
                report.setAside += 1
                // Before the first commit was synchronised there is nothing that could last.
                if meta.map({ $0.transaction > 2 }) ?? false {
                    try Data(image).write(to: URL(fileURLWithPath: directory + "/aside.mdb"))
                    throw Wrong("cut \(point): \(line)")
                }
                return nil
            }
            if line.hasPrefix("bytes ") { report.bytes += UInt64(line.dropFirst(6)) ?? 0 }
        }
        return meta?.transaction
    }
}

/// The newest of the two meta pages of an LMDB file (`MDB_meta` in its mdb.c).
struct Meta {
    var transaction: UInt64

    static func last(in image: [UInt8]) -> Meta? {
        let found = [0, 4096].compactMap { page -> UInt64? in
            guard image.count >= page + 152, image[page + 16] == 0xDE, image[page + 17] == 0xC0
            else { return nil }
            return (0..<8).reduce(0) { $0 | UInt64(image[page + 144 + $1]) << (8 * UInt64($1)) }
        }
        return found.max().map { Meta(transaction: $0) }
    }
}
