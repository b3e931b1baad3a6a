import LarderLMDB
import LarderPolicy
import LarderStore
import NIOCore
import Synchronization

/// Why segments could not be read.
enum SegmentReadFailure: Error, Sendable {
    /// The entry was removed meanwhile.
    case gone
    case damaged(String)
    case failed(LMDBError)

    var description: String {
        switch self {
        case .gone: "the stored body was removed while it was read"
        case .damaged(let reason): "the stored body is damaged: \(reason)"
        case .failed(let error): error.description
        }
    }
}

/// What came of one segment.
enum SegmentRead {
    case piece(ByteBuffer)
    case gone
    case damaged(String)
    case notResident
}

/// How the bytes of bodies come from the file.
///
/// Where a segment lies the tree says; its bytes are read by the descriptor into the buffer that is
/// handed out, and not through the map. Measured, in µs of CPU a value in the page cache, its checksum
/// included:
///
/// | | 4 KiB | 64 KiB |
/// | --- | --- | --- |
/// | copied out of the map, were it all resident in the process | 0.8 | 6.3 |
/// | copied out of the map, which is given back every 64 MiB | 5.0 | 11.4 |
/// | the same after a question of mincore(2) | 6.2 | 12.8 |
/// | preadv2(2) with RWF_NOWAIT | 1.2 | 6.9 |
///
/// So reading costs what a map would cost that no process can afford, takes no page table, says
/// by itself whether it would wait, and makes of a bad sector an EIO and not a SIGBUS.
extension DiskCore {
    /// The bytes in `range`, all of which must be stored, cut at the borders of segments: up to the
    /// first that cannot be had.
    func readSegments(
        of id: ObjectID, key: CacheKey, range: Range<UInt64>, waits: Bool
    ) -> SegmentsRead {
        var result = SegmentsRead()
        guard !range.isEmpty else { return result }
        let file = self.file(of: id)
        defer { self.touchedTrees(1, in: file, waits: waits) }
        let environment = file.environment
        do throws(LMDBError) {
            try environment.read { (transaction) throws(LMDBError) in
                let last = Segment.index(of: range.upperBound - 1)
                for index in Segment.index(of: range.lowerBound)...last {
                    switch try self.readSegment(
                        id, index, range: range, transaction, waits: waits)
                    {
                    case .piece(let piece): result.pieces.append(piece)
                    case .notResident: result.end = .notResident
                    case .damaged(let reason): result.end = .failed(.damaged(reason))
                    case .gone:
                        result.end = try self.absence(of: index, id, key, transaction, waits: waits)
                    }
                    guard case .complete = result.end else { return }
                }
            }
        } catch {
            self.readFailed(error, with: environment)
            result.end = .failed(.failed(error))
        }
        return result
    }

    /// Why a segment is not there: its entry is gone, or it is damaged.
    private func absence(
        of index: UInt32, _ id: ObjectID, _ key: CacheKey,
        _ transaction: borrowing ReadTransaction, waits: Bool
    ) throws(LMDBError) -> SegmentsRead.End {
        let record = self.objectKey(id, of: key).bytes
        switch try transaction.place(self.schema.objects, record.span, mayWait: waits) {
        case .absent: return .failed(.gone)
        case .notResident: return .notResident
        case .at: return .failed(.damaged("segment \(index) is missing"))
        }
    }

    /// What of segment `index` lies in `range`, once the whole of it is found sound.
    func readSegment(
        _ id: ObjectID, _ index: UInt32, range: Range<UInt64>,
        _ transaction: borrowing ReadTransaction, waits: Bool
    ) throws(LMDBError) -> SegmentRead {
        self.counts.segments.add(1, ordering: .relaxed)
        if !waits, !self.mayBeResident(.segment(index)) { return .notResident }
        let key = SegmentKey(id: id, index: index).bytes
        switch try transaction.place(self.schema.segments, key.span, mayWait: waits) {
        case .absent: return .gone
        case .notResident: return .notResident
        case .at(let offset, let length):
            guard length >= Segment.headerSize, length <= Segment.valueSize else {
                return .damaged("segment \(index) has a wrong length")
            }
            var value = ByteBufferAllocator().buffer(capacity: length)
            switch try transaction.read(at: offset, length, into: &value, waits: waits) {
            case .complete: break
            case .notResident: return .notResident
            case .broken(let reason):
                return .damaged("segment \(index) cannot be read: \(reason)")
            }
            return Segment.piece(
                Segment.cell(index, of: range), of: value, id: id, index: index)
        }
    }

    /// Has the kernel read the segments in `range` beforehand; for threads that may wait.
    ///
    /// Places that follow each other in the file, as they do where a body was written at once, are
    /// told as one.
    func willRead(_ range: Range<UInt64>, of id: ObjectID) {
        guard !range.isEmpty else { return }
        var runs: [Range<UInt64>] = []
        let indices = Segment.index(of: range.lowerBound)...Segment.index(of: range.upperBound - 1)
        let environment = self.file(of: id).environment
        // A failure of the hint is found again by the reading.
        try? environment.read { (transaction) throws(LMDBError) in
            for index in indices {
                let key = SegmentKey(id: id, index: index).bytes
                guard
                    case .at(let offset, let length) = try transaction.place(
                        self.schema.segments, key.span, mayWait: true)
                else { return }
                let end = offset &+ UInt64(clamping: length)
                // Between two values lies the header of a page.
                if let last = runs.last, offset >= last.upperBound,
                    offset - last.upperBound <= 4096
                {
                    runs[runs.count - 1] = last.lowerBound..<end
                } else if end > offset {
                    runs.append(offset..<end)
                }
            }
        }
        for run in runs {
            environment.willNeed(
                offset: run.lowerBound, length: run.upperBound - run.lowerBound)
        }
    }

    /// Notes that ways through the trees were gone, so that their pages do not pile up in the process.
    ///
    /// Walks that must not wait touch few of them, and count those themselves.
    func touchedTrees(_ count: Int, in file: CacheFile? = nil, waits: Bool) {
        let residency = (file ?? self.file).residency
        guard waits ? residency.noted(values: count) : residency.notedWalks() else { return }
        // Giving them back takes up to a millisecond: not here, which may be an event loop.
        _ = self.reads.submit(for: .body) { residency.look() }
    }

    /// Whether it is worth while to ask; tests say where it is not.
    func mayBeResident(_ place: ReadPlace) -> Bool {
        self.configuration.isResident?(place) ?? true
    }
}

/// What came of reading bytes of the file.
private enum BytesRead {
    case complete
    case notResident
    case broken(String)
}

extension ReadTransaction {
    /// Appends `length` bytes of the file at `offset` to `buffer`.
    fileprivate func read(
        at offset: UInt64, _ length: Int, into buffer: inout ByteBuffer, waits: Bool
    ) throws(LMDBError) -> BytesRead {
        var got: Int?
        var failure: LMDBError?
        unsafe buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: length) { space in
            do throws(LMDBError) {
                got = try unsafe self.read(
                    at: offset, into: UnsafeMutableRawBufferPointer(rebasing: space[..<length]),
                    waits: waits)
            } catch {
                failure = error
            }
            return min(length, got ?? 0)
        }
        switch failure {
        // A bad sector is there tomorrow, too: the entry is of no use.
        case .some(let error) where error.code == .inputOutput:
            return .broken(error.description)
        case .some(let error): throw error
        case nil: break
        }
        guard let got else { return .notResident }
        return got == length ? .complete : .broken("the file ends in it")
    }
}

extension Segment {
    /// A piece that is so many times smaller than its segment is copied, so that whoever keeps it does
    /// not keep the segment.
    private static let worthACopy = 4

    /// `wanted`, a part of the cell, of a value as it was read, once that is found sound.
    static func piece(
        _ wanted: Range<Int>, of value: ByteBuffer, id: ObjectID, index: UInt32
    ) -> SegmentRead {
        let found = unsafe value.withUnsafeReadableBytes { bytes in
            let bytes = unsafe bytes.bindMemory(to: UInt8.self)
            return Self.place(of: wanted, in: unsafe bytes.span, id: id, index: index)
        }
        switch found {
        case .success(let place):
            guard var piece = value.getSlice(at: place.lowerBound, length: place.count) else {
                return .damaged("segment \(index) has a wrong length")
            }
            if place.count < value.readableBytes / Self.worthACopy {
                piece = ByteBuffer(bytes: piece.readableBytesView)
            }
            return .piece(piece)
        case .failure(.damaged(let reason)): return .damaged(reason)
        case .failure(let failure): return .damaged(failure.description)
        }
    }
}
