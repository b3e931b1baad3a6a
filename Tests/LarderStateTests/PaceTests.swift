import Testing

@testable import LarderState

@Suite("The pace of batches")
struct PaceTests {
    @Test(
        "waits for whole seconds, too",
        arguments: [
            (.zero, 0), (.milliseconds(50), 50_000), (.milliseconds(1_500), 1_500_000),
            (.seconds(3), 3_000_000), (.nanoseconds(999), 0), (.seconds(Int64.max), .max),
        ] as [(Duration, Int)])
    func microseconds(_ delay: Duration, _ expected: Int) {
        #expect(Pace.microseconds(of: delay) == expected)
    }
}
