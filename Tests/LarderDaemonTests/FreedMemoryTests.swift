import Glibc
import Testing

@testable import LarderDaemon

@Suite("Memory that was freed")
struct FreedMemoryTests {
    @Test("is had again without a page fault")
    func reuse() async {
        // mallopt(3) is for the whole process: one of its own.
        await #expect(processExitsWith: .success) {
            precondition(FreedMemory.keep())
            FreedMemoryTests.comeAndGo()
            let before = FreedMemoryTests.faults
            for _ in 0..<100 { FreedMemoryTests.comeAndGo() }
            // 256 pages a turn, were they given back.
            precondition(FreedMemoryTests.faults - before < 2_560)
        }
    }

    /// A MiB in pieces of 64 KiB, all at once.
    fileprivate static func comeAndGo() {
        let pieces = (0..<16).map { _ in [UInt8](repeating: 1, count: 65_536) }
        precondition(pieces.count == 16)
    }

    fileprivate static var faults: Int {
        var usage = rusage()
        unsafe precondition(getrusage(numericCast(RUSAGE_SELF.rawValue), &usage) == 0)
        return usage.ru_minflt
    }
}
