import LarderCredentials
import Testing

@testable import LarderState

@Suite("Records of a session's state")
struct RecordTests {
    private let seal = RecordSeal(StateKey(), salt: [1, 2, 3])

    @Test("are read as they were written", arguments: sampleRecords)
    func roundTrip(_ record: StateRecord) throws {
        #expect(try record.kind.read(record.written) == record)
        #expect(record.written.count.isMultiple(of: 64))
    }

    @Test(
        "are refused when they are cut short anywhere, or have a byte too many",
        arguments: sampleRecords)
    func truncated(_ record: StateRecord) {
        let bytes = record.written
        for count in 0..<bytes.count {
            #expect(throws: RecordFault.self) {
                try record.kind.read(Array(bytes.prefix(count)))
            }
        }
        #expect(throws: RecordFault.self) { try record.kind.read(bytes + [0]) }
        let longer = bytes + [UInt8](repeating: 0, count: 64)
        #expect(throws: RecordFault.self) { try record.kind.read(longer) }
    }

    @Test(
        "never trap, whatever byte is changed and whichever kind they are taken for",
        arguments: sampleRecords)
    func damaged(_ record: StateRecord) {
        for kind in StateRecord.Kind.allCases {
            for i in record.written.indices {
                for bit in 0..<8 {
                    var bytes = record.written
                    bytes[i] ^= 1 << UInt8(bit)
                    // What is read after all means what it would be written as.
                    guard let read = try? kind.read(bytes) else { continue }
                    #expect(read.written == bytes)
                }
            }
        }
    }

    @Test("tell a length beyond all numbers from one that fits")
    func length() {
        var bytes = sampleRecords[0].written
        for i in 1...4 { bytes[i] = 0xFF }
        #expect(throws: RecordFault.short) { try StateRecord.Kind.principal.read(bytes) }
        bytes[0] = 2
        #expect(throws: RecordFault.version) { try StateRecord.Kind.principal.read(bytes) }
    }

    @Test(
        "open under their own key alone (SP 800-38D: additional authenticated data)",
        arguments: sampleRecords)
    func binding(_ record: StateRecord) throws {
        let key = self.seal.key(record, of: "user:alice")
        let sealed = try self.seal.seal(record, under: key)
        #expect(self.seal.open(sealed, under: key) == record)
        let other = self.seal.key(record, of: "user:bob")
        #expect(other != key)
        #expect(self.seal.open(sealed, under: other) == nil)
        #expect(RecordSeal(StateKey(), salt: [1, 2, 3]).open(sealed, under: key) == nil)
        for i in key.indices {
            var changed = key
            changed[i] ^= 1
            #expect(self.seal.open(sealed, under: changed) == nil)
        }
    }

    @Test("do not open with any bit changed, or cut short", arguments: sampleRecords)
    func forged(_ record: StateRecord) throws {
        let key = self.seal.key(record, of: "")
        let sealed = try self.seal.seal(record, under: key)
        for i in sealed.indices {
            var changed = sealed
            changed[i] ^= 0x10
            #expect(self.seal.open(changed, under: key) == nil)
        }
        for count in 0..<sealed.count {
            #expect(self.seal.open(Array(sealed.prefix(count)), under: key) == nil)
        }
    }

    @Test("are never sealed twice with the same nonce")
    func nonces() throws {
        let key = self.seal.key(sampleRecords[0], of: "")
        let nonces = try (0..<100).map { _ in
            try self.seal.seal(sampleRecords[0], under: key)[1..<13]
        }
        #expect(Set(nonces).count == 100)
    }

    @Test("hide how long a password is, up to a step of 64 bytes")
    func padding() {
        let lengths = ["", "a", "sixteen letters."].map {
            StateRecord.named(token("t", $0)).written.count
        }
        #expect(Set(lengths) == [64])
    }

    @Test("differ in their keys by identity and by nothing else")
    func keys() {
        let a = self.seal.key(.cookie(cookie("n", "1")), of: "p")
        #expect(self.seal.key(.cookie(cookie("n", "2", expires: false)), of: "p") == a)
        #expect(self.seal.key(.cookie(cookie("n", path: "/x")), of: "p") != a)
        #expect(self.seal.key(.cookie(cookie("n", domain: "b.example")), of: "p") != a)
        #expect(a.count == RecordSeal.keySize)
        // Names that could be cut in two places are told apart by their lengths.
        let ab = self.seal.key(.credential(credential("b", ""), space("a")), of: "p")
        let ba = self.seal.key(.credential(credential("", ""), space("ab")), of: "p")
        #expect(ab != ba)
    }

    @Test("begin with a description that tells damage from another format")
    func description() {
        let (meta, seal) = StateMeta.make(for: StateKey())
        let bytes = meta.encoded()
        #expect(StateMeta.decode(bytes) == .meta(meta))
        #expect(seal.check == meta.check)
        #expect(meta.seal(with: StateKey()) == nil)
        for i in bytes.indices {
            var changed = bytes
            changed[i] ^= 4
            #expect(StateMeta.decode(changed) == .damaged)
        }
        for count in bytes.indices {
            #expect(StateMeta.decode(Array(bytes.prefix(count))) == .damaged)
        }
    }
}
