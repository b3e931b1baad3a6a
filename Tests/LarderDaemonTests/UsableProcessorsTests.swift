import Glibc
import Testing

@testable import LarderDaemon

@Suite("The processors that the process may run on")
struct UsableProcessorsTests {
    @Test("are those of the affinity mask")
    func mask() async {
        let counts = await withCheckedContinuation { continuation in
            PinnedThread.run { continuation.resume(returning: $0) }
        }
        #expect(counts == PinnedThread.Counts(inMask: 1, usable: 1))
    }

    @Test("are at least one, and no more than the mask has")
    func bounds() throws {
        let mask = try #require(UsableProcessors.inAffinityMask)
        #expect((1...mask).contains(UsableProcessors.count))
    }
}

/// A thread that gives up all processors but one: the mask belongs to the thread, so that the other
/// tests keep theirs.
private enum PinnedThread {
    struct Counts: Equatable, Sendable {
        var inMask: Int?
        var usable: Int
    }

    private final class Job {
        let done: @Sendable (Counts?) -> Void
        init(_ done: @escaping @Sendable (Counts?) -> Void) { self.done = done }
    }

    /// - Parameter done: hears nil where no thread could be made or pinned.
    static func run(_ done: @escaping @Sendable (Counts?) -> Void) {
        let job = unsafe Unmanaged.passRetained(Job(done))
        var thread = pthread_t()
        let code = unsafe pthread_create(
            &thread, nil,
            { context in
                guard let context = unsafe context else { return nil }
                let job = unsafe Unmanaged<Job>.fromOpaque(context).takeRetainedValue()
                job.done(PinnedThread.count())
                return nil
            }, job.toOpaque())
        guard code == 0 else {
            unsafe job.takeRetainedValue().done(nil)
            return
        }
        _ = pthread_detach(thread)
    }

    private typealias SetAffinity =
        @convention(c) (pid_t, Int, UnsafeRawPointer?) -> CInt

    /// glibc declares what pins a thread to those alone who ask for GNU's extensions.
    private static func count() -> Counts? {
        guard let symbol = unsafe dlsym(nil, "sched_setaffinity") else { return nil }
        let setAffinity = unsafe unsafeBitCast(symbol, to: SetAffinity.self)
        // Some processor of those that are allowed: which, nobody has to know.
        for number in 0..<1_024 {
            var mask = [UInt](repeating: 0, count: 1_024 / UInt.bitWidth)
            mask[number / UInt.bitWidth] = 1 << UInt(number % UInt.bitWidth)
            let result = unsafe mask.withUnsafeBytes { bytes in
                unsafe setAffinity(0, bytes.count, bytes.baseAddress)
            }
            if result == 0 {
                return Counts(
                    inMask: UsableProcessors.inAffinityMask, usable: UsableProcessors.count)
            }
        }
        return nil
    }
}
