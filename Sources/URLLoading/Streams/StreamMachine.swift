import Foundation

/// What a connection of a program's does next: operations in, actions out.
///
/// ```
/// connecting ─▶ open ─▶ securing ─▶ open ─▶ captured | finished
/// ```
///
/// Reads are done one after the other, and so are writes, each beside the other: who reads an answer
/// before he has written the question must get both. What changes the connection itself (TLS, the
/// giving away of its streams) waits for all that was asked before, and all that is asked after it
/// waits for it.
struct StreamMachine: Sendable {
    enum Operation: Sendable, Equatable {
        case read(minimum: Int, maximum: Int)
        case write(Data)
        case closeRead
        case closeWrite
        case secure
        case capture
    }

    enum Action: Sendable, Equatable {
        /// A read is done.
        case completeRead(Int, Data, atEnd: Bool)
        case completeWrite(Int)
        case fail(Int, URLError.Code)
        /// Takes the time of an operation away: none; nothing but `send` is under way then.
        case send(Data)
        /// Nothing more will be written.
        case shutDownWriting
        case readClosed
        case writeClosed
        case secure
        /// The streams are to be given away, with what has been read and not taken.
        case capture(Data)
        /// Both sides are closed.
        case finish
        /// The task fails.
        case end(URLError.Code)
    }

    /// What is read before it is asked for.
    static let readAhead = 65_536

    private struct Entry: Sendable {
        let number: Int
        let operation: Operation
    }

    private enum Phase { case connecting, open, securing, over }

    private var phase = Phase.connecting
    private var queue: [Entry] = []
    private var received = Data()
    /// The write that is under way.
    private var sending: Int?
    /// The peer sends no more.
    private var hasEnded = false
    /// A read has said so.
    private var toldEnd = false
    private var readIsClosed = false
    private var writeIsClosed = false
    var isPaused = false

    /// - Parameter writes: false: there is no side that writes.
    init(writes: Bool = true) {
        self.writeIsClosed = !writes
    }

    /// Whether bytes are to be taken off the connection.
    var wantsBytes: Bool {
        guard self.phase == .open, !self.hasEnded, !self.readIsClosed, !self.isPaused else {
            return false
        }
        return self.received.count < self.room
    }

    /// How many bytes may lie here.
    private var room: Int {
        for entry in self.queue {
            if case .read(let minimum, _) = entry.operation { return max(minimum, Self.readAhead) }
        }
        return Self.readAhead
    }

    // MARK: Events

    mutating func enqueue(_ operation: Operation, number: Int) -> [Action] {
        self.queue.append(Entry(number: number, operation: operation))
        return self.advance()
    }

    mutating func opened() -> [Action] {
        guard self.phase == .connecting else { return [] }
        self.phase = .open
        return self.advance()
    }

    mutating func received(_ bytes: Data) -> [Action] {
        self.received.append(bytes)
        return self.advance()
    }

    mutating func ended() -> [Action] {
        guard !self.hasEnded else { return [] }
        self.hasEnded = true
        return (self.readIsClosed ? [] : [.readClosed]) + self.advance()
    }

    /// What `send` was for has been taken by the kernel.
    mutating func sent() -> [Action] {
        guard let number = self.sending else { return [] }
        self.sending = nil
        self.queue.removeAll { $0.number == number }
        return [.completeWrite(number)] + self.advance()
    }

    mutating func secured() -> [Action] {
        guard self.phase == .securing else { return [] }
        self.phase = .open
        return self.advance()
    }

    /// The time of an operation is up.
    ///
    /// A write of which a part may be out ends the task: what came after would be taken for its rest.
    mutating func expired(_ number: Int) -> [Action] {
        guard self.phase != .over, self.queue.contains(where: { $0.number == number }) else {
            return []
        }
        if self.sending == number { return [.end(.timedOut)] }
        self.queue.removeAll { $0.number == number }
        return [.fail(number, .timedOut)] + self.advance()
    }

    mutating func resumed() -> [Action] {
        self.isPaused = false
        return self.advance()
    }

    mutating func over() {
        self.phase = .over
        self.queue = []
        self.received = Data()
    }

    // MARK: What follows

    private mutating func advance() -> [Action] {
        var actions: [Action] = []
        while self.phase == .open, !self.isPaused, let action = self.next() {
            actions += action
        }
        let isRead = self.readIsClosed || self.toldEnd
        if self.phase == .open, isRead, self.writeIsClosed, self.queue.isEmpty {
            self.phase = .over
            actions.append(.finish)
        }
        return actions
    }

    /// Begins, or ends, the first operation that can; nil: none can.
    private mutating func next() -> [Action]? {
        var mayRead = true
        var mayWrite = true
        for (index, entry) in self.queue.enumerated() {
            switch entry.operation {
            case .read(let minimum, let maximum):
                if mayRead, let action = self.read(entry.number, minimum, maximum, at: index) {
                    return [action]
                }
                mayRead = false
            case .write(let data):
                if mayWrite, self.sending == nil { return [self.write(data, entry.number, index)] }
                mayWrite = false
            case .closeRead:
                guard mayRead else { continue }
                self.queue.remove(at: index)
                return self.closeRead()
            case .closeWrite:
                guard mayWrite else { continue }
                self.queue.remove(at: index)
                return self.closeWrite()
            case .secure, .capture:
                guard index == 0 else { return nil }
                self.queue.remove(at: index)
                return entry.operation == .secure ? self.secure() : self.capture()
            }
        }
        return nil
    }

    private mutating func read(
        _ number: Int, _ minimum: Int, _ maximum: Int, at index: Int
    ) -> Action? {
        if self.readIsClosed {
            self.queue.remove(at: index)
            return .fail(number, .networkConnectionLost)
        }
        guard self.received.count >= max(minimum, maximum > 0 ? 1 : 0) || self.hasEnded else {
            return nil
        }
        self.queue.remove(at: index)
        let data = Data(self.received.prefix(maximum))
        self.received = Data(self.received.dropFirst(data.count))
        let atEnd = self.hasEnded && self.received.isEmpty
        if atEnd { self.toldEnd = true }
        return .completeRead(number, data, atEnd: atEnd)
    }

    private mutating func write(_ data: Data, _ number: Int, _ index: Int) -> Action {
        guard !self.writeIsClosed else {
            self.queue.remove(at: index)
            return .fail(number, .networkConnectionLost)
        }
        self.sending = number
        return .send(data)
    }

    private mutating func closeRead() -> [Action] {
        guard !self.readIsClosed else { return [] }
        self.readIsClosed = true
        self.received = Data()
        // That the peer has closed it was told.
        return self.hasEnded ? [] : [.readClosed]
    }

    private mutating func closeWrite() -> [Action] {
        guard !self.writeIsClosed else { return [] }
        self.writeIsClosed = true
        return [.shutDownWriting, .writeClosed]
    }

    /// Bytes that came before TLS were not protected, and would be taken for such that were.
    private mutating func secure() -> [Action] {
        guard self.received.isEmpty, !self.hasEnded, !self.readIsClosed, !self.writeIsClosed else {
            return [.end(.secureConnectionFailed)]
        }
        self.phase = .securing
        return [.secure]
    }

    private mutating func capture() -> [Action] {
        self.phase = .over
        defer { self.received = Data() }
        return [.capture(self.received)]
    }
}
