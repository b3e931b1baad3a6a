import Foundation
import Glibc

/// What a piece of work took of the process.
struct Figures {
    var seconds: Double
    /// User and system time of all threads.
    var processorSeconds: Double
    var bodyBytes: Int
    /// The most that was resident at any time, of it what the program itself was before the work.
    var peakKibibytes: Int
    var kibibytesBefore: Int

    static func measuring(_ work: () async throws -> Int) async rethrows -> Figures {
        let before = Self.status("VmRSS:")
        let (clock, begun, processor) = (ContinuousClock(), ContinuousClock.now, Self.processor())
        let bytes = try await work()
        let taken = begun.duration(to: clock.now).components
        return Figures(
            seconds: Double(taken.seconds) + Double(taken.attoseconds) / 1e18,
            processorSeconds: Self.processor() - processor, bodyBytes: bytes,
            peakKibibytes: Self.status("VmHWM:"), kibibytesBefore: before)
    }

    var json: String {
        """
        {"seconds": \(self.seconds), "cpu": \(self.processorSeconds), "bytes": \(self.bodyBytes), \
        "peak": \(self.peakKibibytes), "before": \(self.kibibytesBefore)}
        """
    }

    private static func processor() -> Double {
        var time = timespec()
        guard unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// A figure of `/proc/self/status` (proc_pid_status(5)), in KiB.
    private static func status(_ name: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }
}
