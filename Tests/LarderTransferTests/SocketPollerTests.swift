import Glibc
import Testing

@testable import LarderTransfer

@Suite("The watching of sockets")
struct SocketPollerTests {
    @Test("knows whether there is a socket that a TLS library writes to, until that is closed")
    func plain() throws {
        let mailbox = try TransferMailbox()
        let epoll = try Epoll(waking: mailbox.descriptor)
        let poller = SocketPoller(epoll, owner: 7, counters: TransferCounters())
        var pair: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let (plain, other) = (pair[0], pair[1])
        #expect(poller.isPlain)
        poller.note(plain, isPlain: true)
        #expect(poller.isPlain)
        poller.note(other, isPlain: false)
        #expect(!poller.isPlain)
        #expect(poller.close(plain) == 0)
        #expect(!poller.isPlain)
        #expect(poller.close(other) == 0)
        #expect(poller.isPlain)
    }

    @Test("ends with a socket that is handed over, though its connection lives on (epoll(7))")
    func handOver() throws {
        let mailbox = try TransferMailbox()
        let epoll = try Epoll(waking: mailbox.descriptor)
        let poller = SocketPoller(epoll, owner: 7, counters: TransferCounters())
        var pair: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        let (socket, far) = (pair[0], pair[1])
        defer { _ = close(far) }
        let forInput: Int32 = 1  // CURL_POLL_IN
        #expect(poller.watch(socket, forInput, isHeld: false))
        var byte: UInt8 = 0x78
        #expect(unsafe write(far, &byte, 1) == 1)
        #expect(epoll.wait(milliseconds: 0) == 1)
        #expect(epoll.ready(0)?.descriptor == socket && epoll.ready(0)?.owner == 7)
        let own = try #require(poller.handOver(socket))
        defer { _ = close(own) }
        #expect(poller.close(socket) == 0)
        // The byte still lies there, and would be reported again and again.
        #expect(epoll.wait(milliseconds: 0) == 0)
        byte = 0
        #expect(unsafe read(own, &byte, 1) == 1)
        #expect(byte == 0x78)
    }
}
