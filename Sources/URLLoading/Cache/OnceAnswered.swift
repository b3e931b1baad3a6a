import Dispatch
import Synchronization

/// Passes the first answer on, whoever gives more of them.
final class OnceAnswered<Answer: Sendable>: Sendable {
    private let completion: Mutex<(@Sendable (Answer) -> Void)?>

    init(_ completion: @escaping @Sendable (Answer) -> Void) {
        self.completion = Mutex(completion)
    }

    func take(_ answer: Answer) {
        self.completion.withLock { $0.take() }?(answer)
    }

    /// Answers itself where nobody has after a time, on a thread of its own.
    func take(_ answer: Answer, after patience: DispatchTimeInterval) {
        OverdueAnswers.queue.asyncAfter(deadline: .now() + patience) { self.take(answer) }
    }
}

/// How long a program's own methods are waited for.
enum OverdueAnswers {
    /// What a cache's methods get by default.
    static let patience = DispatchTimeInterval.seconds(10)

    fileprivate static let queue = DispatchQueue(label: "larder.overdue-answers")
}
