import LarderControl
import Testing

@Suite("Objects on their way over the control socket")
struct ObjectBatchTests {
    private static func object(
        _ id: UInt64, url: String, variant: [ControlField]? = nil
    ) -> MemoryObject {
        MemoryObject(
            id: id, url: url, status: 200, bytes: .max, ageMilliseconds: .min,
            freshForMilliseconds: .min, hits: .max, isOnDisk: true, lastUsedMicroseconds: .min,
            landingMicroseconds: .min, variant: variant)
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

    @Test("what selects a variant goes with it, unless that takes a line of its own")
    func variants() throws {
        let fields = [ControlField(name: "Accept", value: String(repeating: "\"", count: 16_000))]
        let names = (0..<600).map { ControlField(name: "\($0)", value: "") }
        for variant in [fields, names] {
            var batch = ObjectBatch()
            var lines: [[MemoryObject]] = []
            for id in UInt64(0)..<40 {
                let object = Self.object(id, url: "http://h/", variant: variant)
                #expect(object.variant == variant)
                if let full = batch.add(object) { lines.append(full) }
            }
            lines.append(batch.take())
            for line in lines {
                let bytes = try ControlCodec.line(ControlReply.objects(line))
                #expect(bytes.count <= ControlCodec.longestLine)
            }
        }
        #expect(Self.object(0, url: "u", variant: fields + fields).variant == nil)
        #expect(Self.object(0, url: "u", variant: names + names).variant == nil)
    }
}
