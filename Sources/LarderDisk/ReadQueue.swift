import NIOCore

/// What a job for the reading threads is for.
enum ReadPurpose: Sendable, CaseIterable {
    /// Someone waits to hear what is stored: a page or two.
    case lookup
    /// The next bytes of a body, or a hint which ones those will be.
    case body
}

/// The jobs that wait for a reading thread, in the order in which they are to be run: a value.
///
/// Lookups come first, because each is short and a client has heard nothing before it; after a row of
/// them comes one job for a body, so that bodies go on however many lookups there are. Each body
/// has one job here at a time and goes to the end after it: they take turns.
struct ReadQueue<Job: Sendable>: Sendable {
    /// Lookups that go before a body that waits.
    static var lookupsInRow: Int { 8 }

    private var lookups = CircularBuffer<Job>()
    private var bodies = CircularBuffer<Job>()
    /// Lookups since the last body, while one was waiting.
    private var row = 0

    var isEmpty: Bool { self.lookups.isEmpty && self.bodies.isEmpty }

    mutating func append(_ job: Job, for purpose: ReadPurpose) {
        switch purpose {
        case .lookup: self.lookups.append(job)
        case .body: self.bodies.append(job)
        }
    }

    mutating func take() -> Job? {
        if self.row < Self.lookupsInRow || self.bodies.isEmpty,
            let job = self.lookups.popFirst()
        {
            self.row = self.bodies.isEmpty ? 0 : self.row + 1
            return job
        }
        self.row = 0
        return self.bodies.popFirst()
    }
}
