import LarderControl
import Testing

@Suite("Objects on their way over the control socket")
struct ObjectBatchTests {
    private static func object(_ id: UInt64, url: String) -> MemoryObject {
        MemoryObject(
            id: id, url: url, status: 200, bytes: .max, ageMilliseconds: .min,
            freshForMilliseconds: .min, hits: .max, isOnDisk: true, lastUsedMicroseconds: .min,
            landingMicroseconds: .min)
    }

    @Test(
        "each comes once, in order, and no line is too long",
        arguments: [
            (1, "http://h/"), (5000, "http://h/"), (3, String(repeating: "\u{1}", count: 65_536)),
            (40, String(repeating: "\"", count: 8192)),
        ] as [(UInt64, String)])
    func lines(_ count: UInt64, _ url: String) throws {
        var batch = ObjectBatch()
        var lines: [[MemoryObject]] = []
        for id in 0..<count {
            if let full = batch.add(Self.object(id, url: url)) { lines.append(full) }
        }
        #expect(!batch.isEmpty)
        lines.append(batch.take())
        #expect(batch.isEmpty && batch.take().isEmpty)
        #expect(lines.flatMap { $0.map(\.id) } == Array(0..<count))
        #expect(lines.count < count / 10 || count < 50)
        for line in lines {
            let bytes = try ControlCodec.line(ControlReply.objects(line))
            #expect(bytes.count <= ControlCodec.longestLine)
        }
    }
}
