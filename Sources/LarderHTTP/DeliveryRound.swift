import Glibc

/// What is to happen once, when a thread has said all that it has to say at the moment.
package protocol RoundEnd: AnyObject {
    func roundEnded()
}

/// A stretch of a thread's work in which it tells many receivers something, which they carry on to
/// other threads.
///
/// Each of them could wake its thread at once. On a busy machine that thread then takes the core,
/// works off the one message and falls asleep, and is woken for the next. So whoever carries messages
/// asks for the end of the round, and sends what it has then: one wake-up for all of it.
///
/// Not `Sendable`: belongs to its thread.
package final class DeliveryRound {
    /// The round that a thread is in; nil where the system gives no such key, and there are no rounds.
    private static let key: pthread_key_t? = {
        var key = pthread_key_t()
        return unsafe pthread_key_create(&key, nil) == 0 ? key : nil
    }()

    // Taken out to be changed and put back: Tests/Benchmarks/NOTES.md, Counting.
    private var ends: [any RoundEnd] = []

    package init() {}

    /// Runs `body`, which must not be put off for long: all that are told in it wait for its end.
    package func perform(_ body: () -> Void) {
        guard let key = Self.key, unsafe pthread_getspecific(key) == nil,
            unsafe pthread_setspecific(key, Unmanaged.passUnretained(self).toOpaque()) == 0
        else { return body() }
        body()
        _ = pthread_setspecific(key, nil)
        guard !self.ends.isEmpty else { return }
        var ends = self.takeEnds()
        for end in ends { end.roundEnded() }
        ends.removeAll(keepingCapacity: true)
        // Its room is used again.
        self.ends = ends
    }

    private func takeEnds() -> [any RoundEnd] {
        let ends = self.ends
        self.ends = []
        return ends
    }

    /// Has `end` told at the end of the calling thread's round; false where it is in none.
    package static func putOff(_ end: any RoundEnd) -> Bool {
        guard let key = self.key, let round = unsafe pthread_getspecific(key) else { return false }
        unsafe Unmanaged<DeliveryRound>.fromOpaque(round)._withUnsafeGuaranteedRef {
            var ends = $0.takeEnds()
            ends.append(end)
            $0.ends = ends
        }
        return true
    }
}
