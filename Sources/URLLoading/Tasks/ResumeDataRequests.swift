import Foundation

/// Who waits for what a task leaves to go on with: told when it is over, and not later.
struct ResumeDataRequests {
    typealias Handler = @Sendable (Data?) -> Void

    private var handlers: [Handler] = []
    /// The task is over.
    private(set) var isConcluded = false

    /// - Returns: false where the task is over already; then nothing is called.
    mutating func add(_ handler: @escaping Handler) -> Bool {
        guard !self.isConcluded else { return false }
        self.handlers.append(handler)
        return true
    }

    /// The task is over.
    ///
    /// - Returns: those who are to be told what it has left.
    mutating func conclude() -> [Handler] {
        self.isConcluded = true
        defer { self.handlers = [] }
        return self.handlers
    }
}
