import CLinux
import Glibc
import NIOCore
import Testing

@testable import LarderHTTP

@Suite("Memory that is lent")
struct LentMemoryTests {
    private func bytes(_ letter: Character, _ count: Int) -> ByteBuffer {
        ByteBuffer(string: String(repeating: letter, count: count))
    }

    @Test("holds the same bytes", arguments: [1, 4_096, 100_000, 1 << 20, 5 << 20])
    func copy(_ count: Int) throws {
        let bytes = self.bytes("a", count)
        let lent = try #require(LentMemory.copy(of: bytes))
        #expect(lent == bytes)
        #expect(LentMemory.holds(lent))
        #expect((LentMemory.size(of: lent) ?? 0) >= count)
        #expect(!LentMemory.holds(bytes))
    }

    @Test("is not made for nothing")
    func empty() {
        #expect(LentMemory.copy(of: ByteBuffer()) == nil)
        #expect(!LentMemory.holds(ByteBuffer()))
    }

    @Test("is told by where it begins")
    func slice() throws {
        let lent = try #require(LentMemory.copy(of: self.bytes("a", 100_000)))
        #expect(lent.getSlice(at: 0, length: 10).map(LentMemory.holds) == true)
        #expect(lent.getSlice(at: 10, length: 10).map(LentMemory.holds) == false)
    }

    @Test("is left by a buffer that grows")
    func growth() throws {
        var lent = try #require(LentMemory.copy(of: self.bytes("a", 70_000)))
        lent.writeString("b")
        #expect(!LentMemory.holds(lent))
        #expect(lent.readableBytes == 70_001)
        #expect(lent.getString(at: 69_999, length: 2) == "ab")
        let other = try #require(LentMemory.copy(of: self.bytes("a", 70_000)))
        var copy = other
        copy.setString("b", at: 0)
        #expect(other == self.bytes("a", 70_000))
    }

    @Test("leaves its pages to who borrowed them when it is freed and used again")
    func borrowed() throws {
        let count = 65_536
        var ends: [CInt] = [-1, -1]
        let capacity = unsafe larder_open_pipe(&ends, CInt(count))
        try #require(capacity >= count)
        defer { for end in ends { close(end) } }
        var lent = LentMemory.copy(of: self.bytes("a", count))
        let target = ends[1]
        let sent = unsafe lent?.withUnsafeReadableBytes {
            unsafe larder_lend_pages(target, $0.baseAddress, UInt($0.count))
        }
        #expect(sent == count)
        lent = nil
        // Some of them get the same place.
        let others = (0..<64).compactMap { _ in LentMemory.copy(of: self.bytes("b", count)) }
        #expect(others.count == 64)
        var received = [UInt8](repeating: 0, count: count)
        let source = ends[0]
        var place = 0
        while place < count {
            let taken = unsafe received.withUnsafeMutableBytes {
                unsafe read(source, $0.baseAddress?.advanced(by: place), $0.count - place)
            }
            try #require(taken > 0)
            place += taken
        }
        #expect(received.allSatisfy { $0 == UInt8(ascii: "a") })
    }
}
