import CCurl
import Glibc
import Testing

@testable import LarderTransfer

@Suite("Addresses of loopback")
struct LoopbackTests {
    @Test(
        "RFC 6890 §2.2: are those of 127.0.0.0/8 and ::1",
        arguments: [
            ("127.0.0.1", true), ("127.255.0.9", true), ("126.0.0.1", false), ("128.0.0.1", false),
            ("1.0.0.127", false), ("0.0.0.0", false), ("::1", true), ("::", false),
            ("::2", false), ("2001:db8::1", false), ("::1:0:0:1", false), ("7f00::1", false),
        ])
    func families(_ text: String, _ isLoopback: Bool) throws {
        let offset = try #require(MemoryLayout<curl_sockaddr>.offset(of: \.addr))
        // As libcurl has it: with more room behind it than the type says.
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: MemoryLayout<curl_sockaddr>.size + MemoryLayout<sockaddr_in6>.size,
            alignment: MemoryLayout<curl_sockaddr>.alignment)
        defer { unsafe room.deallocate() }
        unsafe room.initializeMemory(as: UInt8.self, repeating: 0)
        let start = try unsafe #require(room.baseAddress)
        let family = text.contains(":") ? AF_INET6 : AF_INET
        let place = try #require(
            family == AF_INET6
                ? MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)
                : MemoryLayout<sockaddr_in>.offset(of: \.sin_addr))
        let read = unsafe inet_pton(family, text, start + offset + place)
        try #require(read == 1)
        let address = unsafe start.bindMemory(to: curl_sockaddr.self, capacity: 1)
        unsafe address.pointee.family = family
        let isSeen = unsafe Transfer.isLoopback(address)
        #expect(isSeen == isLoopback)
        // A path of a socket of this machine has no such address.
        unsafe address.pointee.family = AF_UNIX
        let isSeenOfPath = unsafe Transfer.isLoopback(address)
        #expect(!isSeenOfPath)
    }
}
