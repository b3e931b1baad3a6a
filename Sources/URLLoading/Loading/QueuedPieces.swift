import Foundation

/// What was put into a body and is not read yet, in the order in which it came: in memory, and in a file
/// where there is too much of it.
struct QueuedPieces: Sendable {
    enum Piece: Sendable, Equatable {
        case memory(Data)
        /// - Parameter isThere: it has been written.
        case file(offset: Int64, count: Int, isThere: Bool)
    }

    /// What comes next.
    enum Next: Equatable {
        case data(Data)
        /// To be read from the file.
        case stored(offset: Int64, count: Int)
        /// It is being written.
        case notYet
        case nothing
    }

    /// What one piece holds at most when it is handed on: large ones go in parts.
    static let largest = 1 << 20

    private var pieces: [Piece] = []
    private var read = 0
    /// How many bytes lie in memory.
    private(set) var held = 0
    /// How many pieces lie in the file, and where the next one may.
    private var stored = 0
    private var end: Int64 = 0

    mutating func append(_ data: Data) {
        self.pieces.append(.memory(data))
        self.held += data.count
    }

    /// Keeps a place in the file, which has to be filled.
    ///
    /// - Returns: where it is; nil where a file cannot be as long.
    mutating func reserve(_ count: Int) -> Int64? {
        let (end, overflow) = self.end.addingReportingOverflow(Int64(count))
        guard !overflow else { return nil }
        defer { self.end = end }
        self.stored += 1
        self.pieces.append(.file(offset: self.end, count: count, isThere: false))
        return self.end
    }

    /// The place has been filled; or could not be, and the bytes stay in memory.
    mutating func filled(_ offset: Int64, orKeep data: Data? = nil) {
        let place = self.pieces.lastIndex { piece in
            if case .file(offset, _, false) = piece { true } else { false }
        }
        guard let place, case .file(_, let count, _) = self.pieces[place] else { return }
        guard let data else {
            return self.pieces[place] = .file(offset: offset, count: count, isThere: true)
        }
        self.pieces[place] = .memory(data)
        self.held += data.count
        self.leaveFile()
    }

    /// Takes the next piece off the front.
    mutating func next() -> Next {
        guard self.read < self.pieces.count else { return .nothing }
        switch self.pieces[self.read] {
        case .file(_, _, false): return .notYet
        case .file(let offset, let count, true):
            guard count > Self.largest else {
                self.advance()
                self.leaveFile()
                return .stored(offset: offset, count: count)
            }
            let rest = offset + Int64(Self.largest)
            self.pieces[self.read] = .file(
                offset: rest, count: count - Self.largest, isThere: true)
            return .stored(offset: offset, count: Self.largest)
        case .memory(let data):
            self.held -= min(data.count, Self.largest)
            guard data.count > Self.largest else {
                self.advance()
                return .data(data)
            }
            self.pieces[self.read] = .memory(data.dropFirst(Self.largest))
            return .data(data.prefix(Self.largest))
        }
    }

    private mutating func advance() {
        self.pieces[self.read] = .memory(Data())
        self.read += 1
        // What is read leaves in blocks, so that each is moved a bounded number of times.
        guard self.read >= 64 else { return }
        self.pieces.removeFirst(self.read)
        self.read = 0
    }

    private mutating func leaveFile() {
        self.stored -= 1
    }

    /// What has been read of the file can be written over: nothing of it is wanted any more.
    ///
    /// To be said when nobody is at it.
    mutating func reuseFile() {
        if self.stored == 0 { self.end = 0 }
    }
}
