import Glibc
import Synchronization

/// Keeps what the process has resident of the file's map within a bound.
///
/// Walking through a tree makes its pages, and the kernel's fault-around their neighbours, resident
/// in the process; nothing ever takes them out again while memory is plenty, so that a process that
/// has looked all over a large file once seems to need all of it. The pages stay in the kernel's page
/// cache when they are given back: touching them again costs a minor fault.
///
/// What touching can have brought in at most is added up; when that reaches the bound, the kernel is
/// asked what it has really brought in. So a working set that stays below the bound is never given
/// back, however often it is touched.
package final class Residency: Sendable {
    /// A fault brings in the sixteen pages around it that lie in the page cache
    /// (`fault_around_bytes`, proc(5)).
    private static let faultAround: UInt64 = 65_536

    private let environment: Environment
    private let bound: UInt64
    /// What has been touched since the kernel was last asked.
    private let touched = Atomic<UInt64>(0)
    /// How much of that makes it worth while to ask.
    private let due: Atomic<UInt64>
    /// What the process had of files when the map had just been given back: its own code, mostly.
    private let others: Atomic<UInt64>

    /// - Parameter bound: bytes that may become resident before all are given back.
    package init(_ environment: Environment, bound: UInt64) {
        self.environment = environment
        self.bound = max(bound, Self.faultAround)
        self.due = Atomic(self.bound)
        self.others = Atomic(Self.filePages() ?? 0)
    }

    /// Notes that values were touched, and gives the map's pages back when they are too many.
    ///
    /// Any thread that may take a millisecond, outside transactions or inside.
    package func touched(values: Int = 1, bytes: Int) {
        if self.noted(values: values, bytes: bytes) { self.look() }
    }

    /// Notes what walks that must not wait have touched; true where it is time to ``look()``.
    package func notedWalks() -> Bool {
        let count = self.environment.map.takeNewOftenUsed()
        return count > 0 && self.noted(values: count)
    }

    /// Notes that values were touched; true where it is time to ``look()``.
    package func noted(values: Int = 1, bytes: Int = 0) -> Bool {
        let amount = UInt64(clamping: values) &* Self.faultAround &+ UInt64(clamping: bytes)
        let sum = self.touched.wrappingAdd(amount, ordering: .relaxed).newValue
        guard sum >= self.due.load(ordering: .relaxed) else { return false }
        // Whoever resets it does the work; the others' amounts begin anew with it.
        return self.touched.compareExchange(expected: sum, desired: 0, ordering: .relaxed)
            .exchanged
    }

    /// Asks the kernel how much is resident, and gives all back where that is too much.
    package func look() {
        let files = Self.filePages()
        let others = self.others.load(ordering: .relaxed)
        let resident = files.map { $0 > others ? $0 - others : 0 } ?? self.bound
        guard resident >= self.bound else {
            // Not at each touch, however near the bound is.
            self.due.store(max(self.bound - resident, self.bound / 16), ordering: .relaxed)
            return
        }
        self.environment.giveBackPages()
        self.due.store(self.bound, ordering: .relaxed)
        if let files = Self.filePages() { self.others.store(files, ordering: .relaxed) }
    }

    /// The bytes of files that are resident in this process; nil where it is not told.
    ///
    /// The third number of `/proc/self/statm` (proc(5)): costs three system calls.
    private static func filePages() -> UInt64? {
        let descriptor = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var text = [UInt8](repeating: 0, count: 128)
        let count = unsafe read(descriptor, &text, text.count)
        guard count > 0 else { return nil }
        let numbers = text.prefix(count).split(separator: UInt8(ascii: " "))
        guard numbers.count > 2, let pages = UInt64(String(decoding: numbers[2], as: UTF8.self))
        else { return nil }
        let (bytes, overflow) = pages.multipliedReportingOverflow(
            by: UInt64(clamping: sysconf(Int32(_SC_PAGESIZE))))
        return overflow ? nil : bytes
    }
}

extension Environment {
    /// Takes the file's pages out of this process; the kernel's page cache keeps them.
    ///
    /// Safe at any time: madvise(2) of MADV_DONTNEED on a shared file mapping drops the page table
    /// entries, and the next access finds the page again. It is advice: where it fails, nothing is
    /// lost but the saving.
    package func giveBackPages() {
        // While it is in use it is not closed: the addresses cannot be another map's.
        do throws(LMDBError) { _ = try self.beginUse(takesIdle: false) } catch { return }
        defer { self.endUse() }
        let map = self.map.range
        guard let address = unsafe UnsafeMutableRawPointer(bitPattern: map.lowerBound) else {
            return
        }
        _ = unsafe madvise(address, Int(map.upperBound - map.lowerBound), MADV_DONTNEED)
    }
}
