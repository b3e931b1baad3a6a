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
        #expect(poller.watch(socket, forInput, isHeld: false, isHTTP1: false))
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

    @Test(
        "says nothing of the only idle connection while that is hushed, and of what is wanted of it then",
        arguments: [true, false])
    func hushed(isLoopback: Bool) throws {
        let mailbox = try TransferMailbox()
        let epoll = try Epoll(waking: mailbox.descriptor)
        let poller = SocketPoller(epoll, owner: 7, counters: TransferCounters())
        var (first, second): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &first) == 0)
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &second) == 0)
        defer { for descriptor in first + second { _ = close(descriptor) } }
        let (forInput, remove): (Int32, Int32) = (1, 4)  // CURL_POLL_IN, CURL_POLL_REMOVE
        #expect(!poller.hush())
        poller.rest(first[0], isLoopback: isLoopback)
        #expect(poller.hush())
        #expect(poller.hasIdleSockets && poller.hushedWait == nil)
        #expect(poller.watch(first[0], forInput, isHeld: false, isHTTP1: false))
        #expect(poller.hushedWait == (isLoopback ? first[0] : nil))
        #expect(!poller.isReadable(first[0]))
        var byte: UInt8 = 0x78
        #expect(unsafe write(first[1], &byte, 1) == 1)
        #expect(poller.isReadable(first[0]))
        #expect(epoll.wait(milliseconds: 0) == 0)
        poller.unhush()
        #expect(epoll.wait(milliseconds: 0) == 1)
        // In use: it is nobody's to be hushed, or to be watched as one that is idle.
        #expect(!poller.hush() && poller.hushedWait == nil)
        poller.unhush()
        #expect(!poller.sawIdle(first[0]))
        #expect(unsafe read(first[0], &byte, 1) == 1)
        #expect(poller.watch(first[0], remove, isHeld: false, isHTTP1: false))
        // Its exchange is over before it is watched again.
        #expect(poller.hush())
        #expect(poller.watch(first[0], forInput, isHeld: false, isHTTP1: false))
        #expect(poller.watch(first[0], remove, isHeld: false, isHTTP1: false))
        poller.unhush()
        #expect(unsafe write(first[1], &byte, 1) == 1)
        #expect(epoll.wait(milliseconds: 0) == 1)
        #expect(poller.sawIdle(first[0]) && !poller.hasIdleSockets)
        poller.rest(second[0])
        #expect(poller.hush())
        // What came meanwhile is nobody's answer.
        #expect(unsafe write(second[1], &byte, 1) == 1)
        poller.unhush()
        #expect(!poller.hasIdleSockets)
    }

    @Test("hushes none of several idle connections, and none that is gone meanwhile")
    func unhushable() throws {
        let mailbox = try TransferMailbox()
        let epoll = try Epoll(waking: mailbox.descriptor)
        let poller = SocketPoller(epoll, owner: 7, counters: TransferCounters())
        var (first, second): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &first) == 0)
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &second) == 0)
        defer { for descriptor in first + second { _ = close(descriptor) } }
        poller.rest(first[0])
        poller.rest(second[0])
        // Which of them a request will go out on is not known.
        #expect(!poller.hush())
        _ = poller.handOver(second[0]).map { close($0) }
        #expect(poller.hush())
        _ = poller.handOver(first[0]).map { close($0) }
        // What has its number is as any other.
        #expect(poller.watch(first[0], 1, isHeld: false, isHTTP1: false))  // CURL_POLL_IN
        poller.unhush()
        var byte: UInt8 = 0x78
        #expect(unsafe write(first[1], &byte, 1) == 1)
        #expect(epoll.wait(milliseconds: 0) == 1)
    }

    @Test(
        "forgets a socket that was closed before it was connected, and leaves alone who got its number",
        arguments: [true, false])
    func reusedNumber(isPlain: Bool) throws {
        let mailbox = try TransferMailbox()
        let epoll = try Epoll(waking: mailbox.descriptor)
        let counters = TransferCounters()
        let poller = SocketPoller(epoll, owner: 7, counters: counters)
        var (ours, theirs): ([Int32], [Int32]) = ([-1, -1], [-1, -1])
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ours) == 0)
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &theirs) == 0)
        let (socket, far) = (ours[0], theirs[1])
        defer { for descriptor in ours + theirs { _ = close(descriptor) } }
        poller.note(socket, isPlain: isPlain)
        let (forOutput, remove): (Int32, Int32) = (2, 4)  // CURL_POLL_OUT, CURL_POLL_REMOVE
        #expect(poller.watch(socket, forOutput, isHeld: false, isHTTP1: false))
        // Closes the old one, and gives its number away in the same step.
        try #require(dup2(theirs[0], socket) == socket)
        #expect(poller.watch(socket, remove, isHeld: false, isHTTP1: false))
        #expect(!poller.isWatched(socket))
        #expect(poller.isPlain)
        #expect(!poller.hasIdleSockets)
        var byte: UInt8 = 0x78
        #expect(unsafe write(far, &byte, 1) == 1)
        #expect(epoll.wait(milliseconds: 0) == 0)
        #expect(!poller.sawIdle(socket))
        byte = 0
        #expect(unsafe read(socket, &byte, 1) == 1)
        #expect(byte == 0x78)
    }

    @Test("goes on for a plain connection that was answered before anybody waited for that")
    func quickAnswer() throws {
        let mailbox = try TransferMailbox()
        let epoll = try Epoll(waking: mailbox.descriptor)
        let poller = SocketPoller(epoll, owner: 7, counters: TransferCounters())
        var pair: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { _ = close(pair[1]) }
        poller.note(pair[0], isPlain: true)
        #expect(poller.watch(pair[0], 2, isHeld: false, isHTTP1: false))  // CURL_POLL_OUT
        #expect(poller.watch(pair[0], 4, isHeld: false, isHTTP1: false))  // CURL_POLL_REMOVE
        #expect(poller.hasIdleSockets)
        #expect(poller.close(pair[0]) == 0)
        #expect(!poller.hasIdleSockets)
    }
}
