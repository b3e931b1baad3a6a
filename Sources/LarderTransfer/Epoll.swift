import CCurl
import Glibc

/// The one owner of an epoll(7) descriptor: the sockets of all loops of one thread.
///
/// Not `Sendable`: belongs to that thread. Level-triggered for sockets, as
/// curl_multi_socket_action(3) expects.
@safe final class Epoll {
    struct Ready {
        /// The loop whose socket it is.
        var owner: UInt32
        var descriptor: Int32
        /// `CURL_CSELECT_` bits.
        var events: Int32
    }

    /// Events taken at a time: the kernel hands out what is ready in turn, so that none starves.
    private static let capacity = 256

    private let descriptor: Int32
    private let waking: Int32
    private let buffer: UnsafeMutableBufferPointer<epoll_event>

    /// - Parameter waking: an eventfd(2) that interrupts `wait`. It is watched for writes to it
    ///   (EPOLLET), so that nobody has to read it.
    init(waking: Int32) throws(TransferError) {
        self.descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        self.waking = waking
        unsafe self.buffer = .allocate(capacity: Self.capacity)
        guard self.descriptor >= 0 else { throw .system(.descriptor, "epoll_create1", errno) }
        let events = EPOLLIN.rawValue | EPOLLET.rawValue
        guard self.control(EPOLL_CTL_ADD, waking, events, owner: 0) == 0 else {
            throw .system(.descriptor, "epoll_ctl", errno)
        }
    }

    deinit {
        if self.descriptor >= 0 { _ = Glibc.close(self.descriptor) }
        unsafe self.buffer.deallocate()
    }

    func control(_ operation: Int32, _ socket: Int32, _ events: UInt32, owner: UInt32) -> Int32 {
        var event = unsafe epoll_event()
        unsafe event.events = events
        unsafe event.data.u64 = UInt64(owner) << 32 | UInt64(UInt32(bitPattern: socket))
        return unsafe epoll_ctl(self.descriptor, operation, socket, &event)
    }

    /// Waits for sockets to become ready, and says how many are; -1 waits without limit.
    func wait(milliseconds: Int32) -> Int {
        let count = unsafe epoll_wait(
            self.descriptor, self.buffer.baseAddress, Int32(Self.capacity), milliseconds)
        // EINTR is an early wake like any other; nothing else can happen to a descriptor of ours.
        return Swift.max(0, Int(count))
    }

    /// Whether a `wait` would return at once.
    ///
    /// For guests: leaves what the last `wait` brought alone. It may take away a write to the eventfd
    /// that the thread has seen to already.
    var isReady: Bool {
        var event = unsafe epoll_event()
        return unsafe epoll_wait(self.descriptor, &event, 1, 0) != 0
    }

    /// One of those that the last `wait` counted; nil for the eventfd.
    func ready(_ index: Int) -> Ready? {
        guard unsafe self.buffer.indices.contains(index) else { return nil }
        let event = unsafe self.buffer[index]
        let data = unsafe event.data.u64
        let descriptor = Int32(bitPattern: UInt32(truncatingIfNeeded: data))
        guard descriptor != self.waking else { return nil }
        var events: Int32 = 0
        if unsafe event.events & EPOLLIN.rawValue != 0 { events |= CURL_CSELECT_IN }
        if unsafe event.events & EPOLLOUT.rawValue != 0 { events |= CURL_CSELECT_OUT }
        if unsafe event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 {
            events |= CURL_CSELECT_ERR
        }
        return Ready(owner: UInt32(data >> 32), descriptor: descriptor, events: events)
    }
}
