import Foundation
import NIOCore

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

        /// It waits for all before it, and all behind it for it.
        fileprivate var isBarrier: Bool { self == .secure || self == .capture }
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
    /// What is gathered at most for a read: the peer decides how much of its minimum comes.
    static let gatherLimit = 1 << 30

    private struct Entry: Sendable {
        let number: Int
        let operation: Operation
    }

    private enum Phase { case connecting, open, securing, over }

    private var phase = Phase.connecting
    private var reads = CircularBuffer<Entry>()
    private var writes = CircularBuffer<Entry>()
    /// The first that changes the connection, and all that was asked after it.
    private var later = CircularBuffer<Entry>()
    private var received = ByteBuffer()
    /// The write that is under way, the first.
    private var sending: Int?
    /// The peer sends no more.
    private var hasEnded = false
    /// A read has said so.
    private var toldEnd = false
    private var readIsClosed = false
    private var writeIsClosed = false
    var isPaused = false

    private let gatherLimit: Int

    /// - Parameters:
    ///   - writes: false: there is no side that writes.
    ///   - gatherLimit: what is gathered at most for a read that wants more than `readAhead`.
    init(writes: Bool = true, gatherLimit: Int = StreamMachine.gatherLimit) {
        self.writeIsClosed = !writes
        self.gatherLimit = gatherLimit
    }

    /// Whether bytes are to be taken off the connection.
    var wantsBytes: Bool {
        guard self.phase == .open, !self.hasEnded, !self.readIsClosed, !self.isPaused else {
            return false
        }
        return self.received.readableBytes < self.room
    }

    /// How many bytes may lie here.
    private var room: Int {
        for entry in self.reads {
            guard case .read(let minimum, _) = entry.operation else { continue }
            return max(min(minimum, self.gatherLimit), Self.readAhead)
        }
        return Self.readAhead
    }

    // MARK: Events

    mutating func enqueue(_ operation: Operation, number: Int) -> [Action] {
        let entry = Entry(number: number, operation: operation)
        if operation.isBarrier || !self.later.isEmpty {
            self.later.append(entry)
        } else {
            self.line(up: entry)
        }
        return self.advance()
    }

    mutating func opened() -> [Action] {
        guard self.phase == .connecting else { return [] }
        self.phase = .open
        return self.advance()
    }

    mutating func received(_ bytes: Data) -> [Action] {
        self.received.writeBytes(bytes)
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
        _ = self.writes.popFirst()
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
        guard self.phase != .over else { return [] }
        if self.sending == number { return [.end(.timedOut)] }
        for line in [\Self.reads, \Self.writes, \Self.later] as [WritableKeyPath<Self, _>] {
            guard let index = self[keyPath: line].firstIndex(where: { $0.number == number }) else {
                continue
            }
            self[keyPath: line].remove(at: index)
            self.lineUpLater()
            return [.fail(number, .timedOut)] + self.advance()
        }
        return []
    }

    mutating func resumed() -> [Action] {
        self.isPaused = false
        return self.advance()
    }

    mutating func over() {
        self.phase = .over
        self.reads = CircularBuffer()
        self.writes = CircularBuffer()
        self.later = CircularBuffer()
        self.received = ByteBuffer()
    }

    // MARK: What follows

    private var isIdle: Bool { self.reads.isEmpty && self.writes.isEmpty && self.later.isEmpty }

    private mutating func line(up entry: Entry) {
        switch entry.operation {
        case .read, .closeRead: self.reads.append(entry)
        case .write, .closeWrite: self.writes.append(entry)
        case .secure, .capture: break
        }
    }

    /// Lines up what waits for nothing that changes the connection any more.
    private mutating func lineUpLater() {
        while let entry = self.later.first, !entry.operation.isBarrier {
            self.line(up: self.later.removeFirst())
        }
    }

    private mutating func advance() -> [Action] {
        var actions: [Action] = []
        while self.phase == .open, !self.isPaused, let action = self.next() {
            actions += action
        }
        let isRead = self.readIsClosed || self.toldEnd
        if self.phase == .open, isRead, self.writeIsClosed, self.isIdle {
            self.phase = .over
            actions.append(.finish)
        }
        return actions
    }

    /// Begins, or ends, the first operation that can; nil: none can.
    private mutating func next() -> [Action]? {
        let (read, write) = (self.reads.first, self.sending == nil ? self.writes.first : nil)
        // Of the two that which was asked first.
        if let write, write.number < read?.number ?? .max { return self.write(write) }
        if let read, let actions = self.read(read) { return actions }
        if let write { return self.write(write) }
        guard self.reads.isEmpty, self.writes.isEmpty, let entry = self.later.popFirst() else {
            return nil
        }
        self.lineUpLater()
        return entry.operation == .secure ? self.secure() : self.capture()
    }

    /// nil: it waits for bytes.
    private mutating func read(_ entry: Entry) -> [Action]? {
        guard case .read(let minimum, let maximum) = entry.operation else {
            self.reads.removeFirst()
            return self.closeRead()
        }
        if self.readIsClosed {
            self.reads.removeFirst()
            return [.fail(entry.number, .networkConnectionLost)]
        }
        let count = self.received.readableBytes
        guard count >= max(minimum, maximum > 0 ? 1 : 0) || self.hasEnded else {
            guard count >= self.gatherLimit else { return nil }
            self.reads.removeFirst()
            return [.fail(entry.number, .dataLengthExceedsMaximum)]
        }
        self.reads.removeFirst()
        let data = Data(self.received.readBytes(length: max(0, min(count, maximum))) ?? [])
        if self.received.readerIndex > Self.readAhead { self.received.discardReadBytes() }
        let atEnd = self.hasEnded && self.received.readableBytes == 0
        if atEnd { self.toldEnd = true }
        return [.completeRead(entry.number, data, atEnd: atEnd)]
    }

    private mutating func write(_ entry: Entry) -> [Action] {
        guard case .write(let data) = entry.operation else {
            self.writes.removeFirst()
            return self.closeWrite()
        }
        guard !self.writeIsClosed else {
            self.writes.removeFirst()
            return [.fail(entry.number, .networkConnectionLost)]
        }
        self.sending = entry.number
        return [.send(data)]
    }

    private mutating func closeRead() -> [Action] {
        guard !self.readIsClosed else { return [] }
        self.readIsClosed = true
        self.received = ByteBuffer()
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
        guard self.received.readableBytes == 0, !self.hasEnded, !self.readIsClosed,
            !self.writeIsClosed
        else {
            return [.end(.secureConnectionFailed)]
        }
        self.phase = .securing
        return [.secure]
    }

    private mutating func capture() -> [Action] {
        self.phase = .over
        defer { self.received = ByteBuffer() }
        return [.capture(Data(self.received.readableBytesView))]
    }
}
