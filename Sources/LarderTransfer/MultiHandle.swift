import CCurl

/// The one owner of a curl multi handle.
///
/// Not `Sendable`: belongs to one loop. Every easy handle must be removed before it goes.
@safe final class MultiHandle {
    private let pointer: UnsafeMutableRawPointer
    /// Whom libcurl asks to close sockets, to the last moment of this handle.
    private let poller: SocketPoller

    /// So many connections are no bound: no machine has them, and libcurl's numbers end.
    private static let countless = 1 << 24

    init(
        _ configuration: TransferConfiguration, poller: SocketPoller
    ) throws(TransferError) {
        self.poller = poller
        guard let pointer = unsafe curl_multi_init() else {
            throw TransferError(.library, detail: "curl_multi_init returned no handle")
        }
        unsafe self.pointer = pointer
        // `ConnectionQueue` bounds those that are not shared: a few more for those that are.
        let mostPerHost = configuration.connectionsPerHost
        let isBounded = 1..<Self.countless ~= mostPerHost
        try self.set(CURLMOPT_MAX_HOST_CONNECTIONS, isBounded ? mostPerHost + 4 : 0)
        try self.set(
            CURLMOPT_MAX_TOTAL_CONNECTIONS,
            configuration.share(of: configuration.maximumConnections))
        let idle = configuration.share(of: configuration.idleConnections)
        try self.set(CURLMOPT_MAXCONNECTS, Swift.max(1, idle))
        try self.set(CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    }

    deinit {
        // Fails only for a handle that is none.
        _ = unsafe curl_multi_cleanup(self.pointer)
    }

    private func set(_ option: CURLMoption, _ value: Int) throws(TransferError) {
        let code = unsafe ccurl_multi_set_long(self.pointer, option, value)
        guard code == CURLM_OK else { throw .library("curl_multi_setopt", code) }
    }

    /// Names who hears which sockets to watch and when to call `timedOut`.
    func setCallbacks(
        socket: ccurl_socket_callback?, timer: ccurl_timer_callback?,
        context: UnsafeMutableRawPointer?
    ) throws(TransferError) {
        for code in [
            unsafe ccurl_multi_set_socket_callback(
                self.pointer, CURLMOPT_SOCKETFUNCTION, socket),
            unsafe ccurl_multi_set_pointer(self.pointer, CURLMOPT_SOCKETDATA, context),
            unsafe ccurl_multi_set_timer_callback(self.pointer, CURLMOPT_TIMERFUNCTION, timer),
            unsafe ccurl_multi_set_pointer(self.pointer, CURLMOPT_TIMERDATA, context),
        ] where code != CURLM_OK {
            throw .library("curl_multi_setopt", code)
        }
    }

    func add(_ easy: EasyHandle) -> CURLMcode {
        unsafe curl_multi_add_handle(self.pointer, easy.pointer)
    }

    func remove(_ easy: EasyHandle) -> CURLMcode {
        unsafe curl_multi_remove_handle(self.pointer, easy.pointer)
    }

    /// Tells libcurl that a socket is ready; callbacks of any transfer may run before it returns.
    func ready(_ descriptor: Int32, _ events: Int32) -> CURLMcode {
        var running: Int32 = 0
        return unsafe curl_multi_socket_action(self.pointer, descriptor, events, &running)
    }

    /// Tells libcurl that the time has come that it asked to be called at.
    func timedOut() -> CURLMcode {
        self.ready(ccurl_socket_timeout, 0)
    }

    /// The next transfer that is over, by its `CURLOPT_PRIVATE` pointer, and how it ended.
    func nextCompletion() -> (context: UnsafeMutableRawPointer, result: CURLcode)? {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(self.pointer, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE else { continue }
            let result = unsafe message.pointee.data.result
            var context: UnsafeMutableRawPointer?
            let code = unsafe ccurl_get_pointer(
                message.pointee.easy_handle, CURLINFO_PRIVATE, &context)
            guard code == CURLE_OK, let context = unsafe context else { continue }
            return unsafe (context, result)
        }
        return nil
    }
}
