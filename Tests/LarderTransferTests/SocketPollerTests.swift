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
        var byte: UInt8 = 0x78
        #expect(unsafe write(first[1], &byte, 1) == 1)
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

    /// A socket of IP that listens, and where.
    private static func listener() throws -> (socket: Int32, name: sockaddr_in) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var name = Self.loopback(0)
        try #require(unsafe Self.call(listener, &name, bind) == 0 && listen(listener, 4) == 0)
        name.sin_port = try #require(Self.localPort(of: listener))
        return (listener, name)
    }

    private static func loopback(_ port: in_port_t) -> sockaddr_in {
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        name.sin_port = port
        return name
    }

    private static func call(
        _ socket: Int32, _ name: inout sockaddr_in,
        _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        unsafe withUnsafePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                unsafe function(socket, name, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    @Test("takes the socket of an exchange by both its ends: two may begin at the same place")
    func ends() throws {
        let mailbox = try TransferMailbox()
        let epoll = try Epoll(waking: mailbox.descriptor)
        let poller = SocketPoller(epoll, owner: 7, counters: TransferCounters())
        var (opened, port): ([Int32], in_port_t) = ([], 0)
        defer { for descriptor in opened { _ = close(descriptor) } }
        var sockets: [Int32] = []
        for _ in 0..<2 {
            var (listener, far) = try Self.listener()
            let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            opened += [listener, socket]
            var (on, near) = (Int32(1), Self.loopback(port))
            let size = socklen_t(MemoryLayout<Int32>.size)
            try #require(unsafe setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, size) == 0)
            try #require(unsafe Self.call(socket, &near, bind) == 0)
            try #require(unsafe Self.call(socket, &far, connect) == 0)
            if port == 0 { port = try #require(Self.localPort(of: socket)) }
            sockets.append(socket)
        }
        let ends = sockets.map { ConnectionEnds(of: $0) }
        #expect(ends[0] != ends[1])
        for socket in sockets { poller.rest(socket) }
        for (socket, ends) in zip(sockets, ends) {
            let ends = try #require(ends)
            #expect(poller.takeUnwanted(ends) == socket)
            #expect(!poller.isWatched(socket))
            // It is not idle any more, and still the one.
            #expect(poller.takeUnwanted(ends) == socket)
            #expect(poller.watch(socket, 1, isHeld: false, isHTTP1: false))  // CURL_POLL_IN
            #expect(poller.takeUnwanted(ends) == nil)
        }
    }

    private static func localPort(of socket: Int32) -> in_port_t? {
        var name = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isNamed = unsafe withUnsafeMutablePointer(to: &name) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                unsafe getsockname(socket, name, &size) == 0
            }
        }
        return isNamed ? name.sin_port : nil
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
