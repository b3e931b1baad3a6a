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
        guard (try? self.beginUse(takesIdle: false)) != nil else { return }
        defer { self.endUse() }
        guard let map = self.map.range(),
            let address = unsafe UnsafeMutableRawPointer(bitPattern: map.lowerBound)
        else { return }
        _ = unsafe madvise(address, Int(map.upperBound - map.lowerBound), MADV_DONTNEED)
    }
}

/// Where in this process a file is mapped, found once.
///
/// LMDB tells nobody (`me_mapaddr` is that of MDB_FIXEDMAP), so proc(5) is asked:
/// `START-END r--s OFFSET DEV INODE PATH`.
final class MapFinder: Sendable {
    private enum State {
        case unknown
        case known(Range<UInt>)
        case absent
    }

    private let inode: UInt64
    private let state = Mutex(State.unknown)

    init(inode: UInt64) {
        self.inode = inode
    }

    func range() -> Range<UInt>? {
        switch self.state.withLock({ $0 }) {
        case .known(let range): return range
        case .absent: return nil
        case .unknown: break
        }
        let found = Self.find(self.inode)
        self.state.withLock { $0 = found.map { .known($0) } ?? .absent }
        return found
    }

    /// To be called when the map may have moved.
    func forget() {
        self.state.withLock { $0 = .unknown }
    }

    private static func find(_ inode: UInt64) -> Range<UInt>? {
        guard let file = unsafe fopen("/proc/self/maps", "re") else { return nil }
        defer { unsafe _ = fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var room = 0
        defer { unsafe free(line) }
        while unsafe getline(&line, &room, file) > 0 {
            guard let text = unsafe line.map({ unsafe String(cString: $0) }) else { continue }
            if let range = Self.range(of: text, inode: inode) { return range }
        }
        return nil
    }

    /// The addresses of a line that speaks of a shared map of this file, from its beginning.
    static func range(of line: String, inode: UInt64) -> Range<UInt>? {
        let parts = line.split(separator: " ", omittingEmptySubsequences: true)
        guard parts.count >= 5, parts[1].hasSuffix("s"), UInt64(parts[2], radix: 16) == 0,
            UInt64(parts[4].prefix { $0.isNumber }) == inode
        else { return nil }
        let ends = parts[0].split(separator: "-")
        guard ends.count == 2, let start = UInt(ends[0], radix: 16),
            let end = UInt(ends[1], radix: 16), start < end
        else { return nil }
        return start..<end
    }
}
