import LarderHTTP

/// Where other threads come to the loops of a thread that sleeps, to begin a fetch by themselves.
///
/// A fetch of a program that waits for one after the other costs two changes of thread otherwise: to
/// the loop's thread, and back with the answer. A guest saves the first, 20 to 40 µs on a virtual
/// machine whose idle processor has to be woken. It sends what libcurl would send at once; whatever
/// comes of it is the thread's business, if it comes when the guest has left.
///
/// `@unchecked`: the runner is touched between `enter` and `leave` alone, when nobody else does
/// (`LoopOwnership`).
final class GuestEntrance: @unchecked Sendable {
    private let runner: TransferRunner
    let mailbox: TransferMailbox

    /// - Parameter runner: lives as long as the process, or is retired before anybody comes.
    init(_ runner: TransferRunner) {
        self.runner = runner
        self.mailbox = runner.mailbox
    }

    /// Begins a fetch on this thread; false where it must be posted.
    ///
    /// Where all of the answer is there already the receiver is told by this thread, if it takes that: the
    /// loop's is not woken, and nobody waits for it. So it is where the origin runs on this processor,
    /// and had it as soon as the request was sent, or when it was let go first.
    func begin(_ order: FetchOrder, at port: LoopPort) -> Bool {
        guard self.mailbox.enter() else { return false }
        var answer: WholeResponse?
        let isBegun = self.runner.memory.lend {
            self.runner.begin(order, at: port, answer: &answer)
        }
        self.runner.leave()
        if let answer = answer.take() { order.answered(answer) }
        return isBegun
    }
}
