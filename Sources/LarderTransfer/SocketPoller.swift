import CCurl
import Glibc

/// The one owner of an epoll(7) descriptor: which sockets libcurl waits for, and which are ready.
///
/// Not `Sendable`: belongs to one loop. Level-triggered, as curl_multi_socket_action(3) expects.
@safe final class SocketPoller {
    struct Ready {
        var descriptor: Int32
        /// `CURL_CSELECT_` bits.
        var events: Int32
    }

    private static let capacity = 256

    private let descriptor: Int32
    private let buffer: UnsafeMutableBufferPointer<epoll_event>
    /// What each socket is watched for, as epoll has it.
    private var watched: [Int32: UInt32] = [:]

    init(waking: Int32) throws(TransferError) {
        self.descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        unsafe self.buffer = .allocate(capacity: Self.capacity)
        guard self.descriptor >= 0 else { throw .system(.descriptor, "epoll_create1", errno) }
        guard self.control(EPOLL_CTL_ADD, waking, EPOLLIN.rawValue) == 0 else {
            throw .system(.descriptor, "epoll_ctl", errno)
        }
    }

    deinit {
        if self.descriptor >= 0 { _ = close(self.descriptor) }
        unsafe self.buffer.deallocate()
    }

    /// Does what the socket callback asks (CURLMOPT_SOCKETFUNCTION(3)); false when epoll cannot.
    func watch(_ socket: Int32, _ what: Int32) -> Bool {
        if what == CURL_POLL_REMOVE {
            self.watched[socket] = nil
            // libcurl may have closed it, and then epoll has forgotten it already.
            _ = self.control(EPOLL_CTL_DEL, socket, 0)
            return true
        }
        var events: UInt32 = 0
        if what & CURL_POLL_IN != 0 { events |= EPOLLIN.rawValue }
        if what & CURL_POLL_OUT != 0 { events |= EPOLLOUT.rawValue }
        let known = self.watched.updateValue(events, forKey: socket)
        if known == events { return true }
        let operation = known == nil ? EPOLL_CTL_ADD : EPOLL_CTL_MOD
        if self.control(operation, socket, events) == 0 { return true }
        // A number can come back for another socket before libcurl said that the first is gone.
        switch (operation, errno) {
        case (EPOLL_CTL_ADD, EEXIST): return self.control(EPOLL_CTL_MOD, socket, events) == 0
        case (EPOLL_CTL_MOD, ENOENT): return self.control(EPOLL_CTL_ADD, socket, events) == 0
        default: return false
        }
    }

    /// Waits for sockets to become ready; -1 waits without limit.
    func wait(milliseconds: Int32) -> [Ready] {
        let count = unsafe epoll_wait(
            self.descriptor, self.buffer.baseAddress, Int32(Self.capacity), milliseconds)
        // EINTR is an early wake like any other; nothing else can happen to a descriptor of ours.
        guard count > 0 else { return [] }
        return unsafe self.buffer.prefix(Int(count)).map { event in
            var events: Int32 = 0
            if unsafe event.events & EPOLLIN.rawValue != 0 { events |= CURL_CSELECT_IN }
            if unsafe event.events & EPOLLOUT.rawValue != 0 { events |= CURL_CSELECT_OUT }
            if unsafe event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 {
                events |= CURL_CSELECT_ERR
            }
            return Ready(descriptor: unsafe event.data.fd, events: events)
        }
    }

    private func control(_ operation: Int32, _ socket: Int32, _ events: UInt32) -> Int32 {
        var event = unsafe epoll_event()
        unsafe event.events = events
        unsafe event.data.fd = socket
        return unsafe epoll_ctl(self.descriptor, operation, socket, &event)
    }
}
