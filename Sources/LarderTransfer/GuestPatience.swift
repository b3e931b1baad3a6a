/// How long a guest waits for the answer of an origin on this machine before it leaves: as long as a small
/// answer takes, and not at all where that was in vain lately.
///
/// It holds up a thread of the program's: so once for a request at most, and after each time in vain that
/// many requests go by without, of which there are soon a thousand (`mostPassedOver`). Whoever asks an
/// origin that takes its time waits 0.2 µs a request in the end.
///
/// A value: what a request may do and what came of it go in. Belongs to a loop.
struct GuestPatience: Equatable {
    /// In nanoseconds.
    ///
    /// Two processors that have to be woken, and an origin that has the answer at hand, take 50,000 to
    /// 100,000 on a virtual machine.
    static let longest = 200_000
    static let mostPassedOver = 1024

    private var passesOver = 0
    private var left = 0

    /// Whether the next request may be waited for.
    mutating func mayWait() -> Bool {
        guard self.left > 0 else { return true }
        self.left -= 1
        return false
    }

    /// A request was waited for.
    ///
    /// - Parameter isAnswered: the guest took the whole answer with it.
    mutating func ended(isAnswered: Bool) {
        self.passesOver = isAnswered ? 0 : min(Self.mostPassedOver, max(2, 2 * self.passesOver))
        self.left = self.passesOver
    }
}
