import Glibc

/// What is put down in an ``UnnamedFile`` on its way, in large pieces.
///
/// One thread uses it.
final class TemporaryFile {
    private let descriptor: CInt
    private let directory: String
    private(set) var size: UInt64 = 0
    /// Written, but not yet given to the kernel.
    private var waiting: [UInt8] = []

    private static let pieceSize = 256 << 10

    /// Makes one in `directory`, which $TMPDIR names, or in /tmp.
    init(directory: String = UnnamedFile.usualDirectory) throws(CommandFailure) {
        let descriptor = UnnamedFile.make(in: directory)
        guard descriptor >= 0 else {
            throw Self.failure(errno, directory, "cannot make a temporary file")
        }
        self.descriptor = descriptor
        self.directory = directory
    }

    deinit { close(self.descriptor) }

    private static func failure(
        _ code: CInt, _ directory: String, _ what: String
    ) -> CommandFailure {
        CommandFailure(
            .cannotCreate, "\(directory): \(what): \(Output.reason(code))",
            remedy: "set TMPDIR to a directory with room, or give --limit")
    }

    func append(_ bytes: some Collection<UInt8>) throws(CommandFailure) {
        self.waiting += bytes
        self.size += UInt64(bytes.count)
        if self.waiting.count >= Self.pieceSize { try self.flush() }
    }

    /// To be called before what was appended is read.
    func flush() throws(CommandFailure) {
        var rest = self.waiting[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe write(self.descriptor, $0.baseAddress, $0.count)
            }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count == 0 || errno != EINTR {
                throw Self.failure(
                    count == 0 ? EIO : errno, self.directory, "cannot write what is to be sorted")
            }
        }
        self.waiting.removeAll(keepingCapacity: true)
    }

    /// Up to `count` bytes from `offset` on; fewer at the end only.
    func read(_ count: Int, from offset: UInt64) throws(CommandFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let start = filled
            let got = unsafe bytes.withUnsafeMutableBytes { buffer in
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
                return unsafe pread(
                    self.descriptor, rest.baseAddress, rest.count,
                    off_t(clamping: offset &+ UInt64(start)))
            }
            if got == 0 { break }
            if got < 0 {
                if errno == EINTR { continue }
                throw Self.failure(errno, self.directory, "cannot read what was sorted")
            }
            filled += got
        }
        bytes.removeLast(count - filled)
        return bytes
    }
}

/// Where a sorted run of records lies in a temporary file.
///
/// ```
/// (length:4 record) …
/// ```
struct SortedRun {
    let file: TemporaryFile
    let start: UInt64
    let end: UInt64

    /// The form of a record's length before it.
    static func header(_ length: Int) -> [UInt8] {
        let length = UInt32(clamping: length)
        return [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: length >> $0) }
    }
}

/// Takes the records of a run, one after the other, through a small buffer.
struct RunReader {
    private let run: SortedRun
    private let bufferSize: Int
    private var offset: UInt64
    private var buffer: [UInt8] = []
    private var place = 0

    init(_ run: SortedRun, bufferSize: Int) {
        self.run = run
        self.bufferSize = bufferSize
        self.offset = run.start
    }

    /// The next record; nil at the end.
    mutating func next() throws(CommandFailure) -> [UInt8]? {
        guard self.place < self.buffer.count || self.offset < self.run.end else { return nil }
        try self.fill(4)
        var length = 0
        for index in 0..<4 { length |= Int(self.buffer[self.place + index]) << (8 * index) }
        self.place += 4
        try self.fill(length)
        let record = Array(self.buffer[self.place..<self.place + length])
        self.place += length
        return record
    }

    /// Has at least `count` bytes in the buffer.
    private mutating func fill(_ count: Int) throws(CommandFailure) {
        let there = self.buffer.count - self.place
        guard there < count else { return }
        let left = self.run.end - self.offset
        let wanted = Int(clamping: min(left, UInt64(max(self.bufferSize, count - there))))
        let piece = try self.run.file.read(wanted, from: self.offset)
        self.offset += UInt64(piece.count)
        self.buffer = Array(self.buffer[self.place...]) + piece
        self.place = 0
        guard self.buffer.count >= count else {
            throw CommandFailure(.inputOutput, "what was sorted was cut short")
        }
    }
}
