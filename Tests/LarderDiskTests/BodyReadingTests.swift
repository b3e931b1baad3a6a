import LarderHTTP
import LarderStore
import NIOCore
import Testing

@testable import LarderDisk

private let cell = UInt64(Segment.payloadSize)

private func pieces(_ count: Int) -> [ByteBuffer] {
    Array(repeating: ByteBuffer(repeating: 7, count: Segment.payloadSize), count: count)
}

extension BodyReading.Turn {
    fileprivate var name: String {
        switch self {
        case .piece(let piece): "piece \(piece.readableBytes)"
        case .end: "end"
        case .failed(let failure): "failed \(failure)"
        case .pending: "pending"
        case .readInPlace(let range): "read \(range)"
        }
    }
}

/// A machine that `#expect` can hold.
private final class Machine {
    private var reading: BodyReading

    init(_ range: Range<UInt64>) { self.reading = BodyReading(range: range) }

    func asked() -> String { self.reading.asked().name }
    func readInPlace(_ read: SegmentsRead) -> String { self.reading.readInPlace(read).name }
    func stepFinished(_ read: SegmentsRead) -> Bool { self.reading.stepFinished(read) }
    func stepRefused(_ failure: BodyFailure) -> Bool { self.reading.stepRefused(failure) }
    func takeJob() -> BodyReading.Job? { self.reading.takeJob() }
    func finish() { self.reading.finish() }
}

@Suite("A reader's way through a body")
struct BodyReadingTests {
    @Test("takes a few segments a step while all is in memory, and gives the pool nothing to do")
    func resident() {
        let reading = Machine(10..<5 * cell + 1)
        #expect(reading.asked() == "read \(10..<cell)")
        let first = ByteBuffer(repeating: 1, count: Int(cell) - 10)
        #expect(reading.readInPlace(SegmentsRead(pieces: [first])) == "piece \(cell - 10)")
        #expect(reading.asked() == "read \(cell..<5 * cell)")
        #expect(reading.readInPlace(SegmentsRead(pieces: pieces(4))) == "piece \(cell)")
        for _ in 0..<3 { #expect(reading.asked() == "piece \(cell)") }
        #expect(reading.asked() == "read \(5 * cell..<5 * cell + 1)")
        let last = ByteBuffer(repeating: 1, count: 1)
        #expect(reading.readInPlace(SegmentsRead(pieces: [last])) == "piece 1")
        #expect(reading.takeJob() == nil)
        #expect(reading.asked() == "end")
    }

    @Test("takes one segment again where the others are not in memory")
    func partly() {
        let reading = Machine(0..<20 * cell)
        _ = reading.asked()
        _ = reading.readInPlace(SegmentsRead(pieces: pieces(1)))
        #expect(reading.asked() == "read \(cell..<5 * cell)")
        let read = SegmentsRead(pieces: pieces(2), end: .notResident)
        #expect(reading.readInPlace(read) == "piece \(cell)")
        #expect(reading.asked() == "piece \(cell)")
        #expect(reading.asked() == "read \(3 * cell..<4 * cell)")
        #expect(reading.readInPlace(SegmentsRead(end: .notResident)) == "pending")
        #expect(reading.takeJob()?.step == 3 * cell..<4 * cell)
    }

    @Test("leaves to the pool what is not, one segment first, four a step then, and tells ahead")
    func cold() {
        let end = 100 * cell
        let reading = Machine(0..<end)
        _ = reading.asked()
        #expect(reading.readInPlace(SegmentsRead(end: .notResident)) == "pending")
        #expect(reading.takeJob() == .init(hint: 0..<4 * cell, step: 0..<cell))
        #expect(reading.takeJob() == nil)
        // Asked in vain, it goes on waiting for the same step.
        #expect(reading.asked() == "pending")
        #expect(reading.takeJob() == nil)
        #expect(reading.stepFinished(SegmentsRead(pieces: pieces(1))))
        #expect(reading.asked() == "piece \(cell)")
        #expect(reading.asked() == "read \(cell..<2 * cell)")
        #expect(reading.readInPlace(SegmentsRead(end: .notResident)) == "pending")
        #expect(reading.takeJob() == .init(hint: 4 * cell..<9 * cell, step: cell..<5 * cell))
        #expect(reading.stepFinished(SegmentsRead(pieces: pieces(4))))
        for _ in 0..<4 { #expect(reading.asked() == "piece \(cell)") }
        // What was told has come meanwhile: read here, and the next stretch told.
        #expect(reading.asked() == "read \(5 * cell..<6 * cell)")
        #expect(reading.readInPlace(SegmentsRead(pieces: pieces(1))) == "piece \(cell)")
        #expect(reading.takeJob() == .init(hint: 9 * cell..<22 * cell, step: nil))
        #expect(reading.asked() == "read \(6 * cell..<10 * cell)")
        #expect(reading.readInPlace(SegmentsRead(pieces: pieces(1))) == "piece \(cell)")
        #expect(reading.takeJob() == nil)
    }

    @Test("wakes a reader that waits, and no other")
    func wakes() {
        let reading = Machine(0..<cell)
        #expect(!reading.stepFinished(SegmentsRead(pieces: pieces(1))))
        _ = reading.asked()
        _ = reading.readInPlace(SegmentsRead(end: .notResident))
        #expect(reading.stepFinished(SegmentsRead(pieces: pieces(1))))
        #expect(!reading.stepFinished(SegmentsRead(pieces: pieces(1))))
        #expect(reading.asked() == "piece \(cell)")
        #expect(reading.asked() == "end")
    }

    @Test("hands out what was sound before it says that the rest is not", arguments: [true, false])
    func failure(onPool: Bool) {
        let reading = Machine(0..<4 * cell)
        let read = SegmentsRead(pieces: pieces(2), end: .failed(.gone))
        _ = reading.asked()
        if onPool {
            _ = reading.readInPlace(SegmentsRead(end: .notResident))
            #expect(reading.stepFinished(read))
            #expect(reading.asked() == "piece \(cell)")
        } else {
            #expect(reading.readInPlace(read) == "piece \(cell)")
        }
        #expect(reading.asked() == "piece \(cell)")
        let last = reading.asked()
        #expect(last.contains("removed"))
        reading.finish()
        #expect(reading.asked() == last)
    }

    @Test("says that it was cancelled from then on, whatever still comes")
    func cancelled() {
        for isReading in [true, false] {
            let reading = Machine(0..<4 * cell)
            _ = reading.asked()
            if !isReading { _ = reading.readInPlace(SegmentsRead(end: .notResident)) }
            reading.finish()
            if isReading {
                let turn = reading.readInPlace(SegmentsRead(pieces: pieces(1)))
                #expect(turn == "failed cancelled")
            } else {
                #expect(!reading.stepFinished(SegmentsRead(pieces: pieces(1))))
            }
            #expect(reading.takeJob() == nil)
            #expect(reading.asked() == "failed cancelled")
        }
    }

    @Test("ends where the pool takes no step any more")
    func refused() {
        let reading = Machine(0..<cell)
        _ = reading.asked()
        _ = reading.readInPlace(SegmentsRead(end: .notResident))
        #expect(reading.stepRefused(.store("closed")))
        #expect(reading.asked().contains("closed"))
    }
}

@Suite("What the kernel is told of a body beforehand")
struct ReadAheadTests {
    @Test("is nothing while nothing is missing")
    func nothing() {
        var ahead = ReadAhead()
        #expect(ahead.advanced(to: 5, end: 100 * cell) == nil)
        #expect(ahead == ReadAhead())
    }

    @Test("keeps at least half a window told, never tells a byte twice, and ends with the body")
    func sequence() {
        let end = 1_000 * cell + 5
        var ahead = ReadAhead()
        var told = ahead.missed(at: 0, end: end)?.upperBound ?? 0
        #expect(told == 4 * cell)
        for offset in stride(from: cell, to: end, by: Int(cell)) {
            if let hint = ahead.advanced(to: offset, end: end) {
                #expect(hint.lowerBound == told)
                told = hint.upperBound
            }
            #expect(told > offset)
            #expect(told - offset <= ReadAhead.widestWindow)
        }
        #expect(told == end)
        #expect(ahead.missed(at: end - 1, end: end) == nil)
    }

    @Test(
        "begins behind a stretch that was skipped, and survives any number",
        arguments: [
            0, 1, cell, 1 << 48, .max - 1,
        ] as [UInt64])
    func anywhere(offset: UInt64) {
        var ahead = ReadAhead()
        for end in [offset, offset + 1, .max] {
            if let hint = ahead.missed(at: offset, end: end) {
                #expect(hint.lowerBound >= offset && hint.upperBound <= end)
            }
            _ = ahead.advanced(to: offset, end: end)
        }
    }
}
