import Glibc
import Synchronization

/// Keeps what the process has resident of the file's map within a bound.
///
/// Reading a value makes its pages, and the kernel's fault-around their neighbours, resident in the
/// process; nothing ever takes them out again while memory is plenty, so that a process that has
/// read a large file once seems to need all of it. The pages stay in the kernel's page cache when
/// they are given back: touching them again costs a minor fault.
package final class Residency: Sendable {
    /// A fault brings in the sixteen pages around it that lie in the page cache
    /// (`fault_around_bytes`, proc(5)).
    private static let faultAround: UInt64 = 65_536

    private let environment: Environment
    private let bound: UInt64
    private let touched = Atomic<UInt64>(0)

    /// - Parameter bound: bytes that may become resident before all are given back.
    package init(_ environment: Environment, bound: UInt64) {
        self.environment = environment
        self.bound = max(bound, Self.faultAround)
    }

    /// Notes that values were touched, and gives the map's pages back when that was enough.
    ///
    /// Any thread, outside transactions or inside.
    package func touched(values: Int = 1, bytes: Int) {
        let amount = UInt64(clamping: values) &* Self.faultAround &+ UInt64(clamping: bytes)
        let sum = self.touched.wrappingAdd(amount, ordering: .relaxed).newValue
        guard sum >= self.bound else { return }
        // Whoever resets it does the work; the others' amounts begin anew with it.
        guard
            self.touched.compareExchange(expected: sum, desired: 0, ordering: .relaxed).exchanged
        else { return }
        self.environment.giveBackPages()
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
