import CCurl
import Glibc
import LarderHTTP

/// The functions that libcurl calls during a transfer.
///
/// Their context is the handle, which owns libcurl's and knows its transfer until that is taken out of
/// the multi handle. They neither throw nor call libcurl (but for facts of the
/// transfer that is being told of); they note and return.
extension EasyHandle {
    func setCallbacks(_ transfer: Transfer) {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe self.set(CURLOPT_PRIVATE, pointer: context)
        unsafe self.set(CURLOPT_HEADERDATA, pointer: context)
        unsafe self.set(CURLOPT_WRITEDATA, pointer: context)
        unsafe self.set(CURLOPT_PREREQDATA, pointer: context)
        unsafe self.set(CURLOPT_RESOLVER_START_DATA, pointer: context)
        unsafe self.set(CURLOPT_OPENSOCKETDATA, pointer: context)
        // A socket outlives the transfer that opened it, but not the multi handle, which holds the
        // poller.
        let poller = unsafe Unmanaged.passUnretained(transfer.loop.poller).toOpaque()
        unsafe self.set(CURLOPT_CLOSESOCKETDATA, pointer: poller)
        unsafe self.set(CURLOPT_DEBUGDATA, pointer: context)
        for code in [
            unsafe ccurl_set_transfer_callback(
                self.pointer, CURLOPT_HEADERFUNCTION, Self.headerCallback),
            unsafe ccurl_set_transfer_callback(
                self.pointer, CURLOPT_WRITEFUNCTION, Self.writeCallback),
            unsafe ccurl_set_prereq_callback(
                self.pointer, CURLOPT_PREREQFUNCTION, Self.prereqCallback),
            unsafe ccurl_set_resolver_start_callback(
                self.pointer, CURLOPT_RESOLVER_START_FUNCTION, Self.resolverStartCallback),
            unsafe ccurl_set_opensocket_callback(
                self.pointer, CURLOPT_OPENSOCKETFUNCTION, Self.openSocketCallback),
            unsafe ccurl_set_closesocket_callback(
                self.pointer, CURLOPT_CLOSESOCKETFUNCTION, Self.closeSocketCallback),
            unsafe ccurl_set_debug_callback(
                self.pointer, CURLOPT_DEBUGFUNCTION, Self.debugCallback),
        ] {
            self.note(code)
        }
    }

    func setContentCallbacks(hasTrailers: Bool) {
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe self.set(CURLOPT_READDATA, pointer: context)
        self.note(
            unsafe ccurl_set_transfer_callback(
                self.pointer, CURLOPT_READFUNCTION, Self.readCallback))
        unsafe self.set(CURLOPT_SEEKDATA, pointer: context)
        self.note(
            unsafe ccurl_set_seek_callback(
                self.pointer, CURLOPT_SEEKFUNCTION, Self.seekCallback))
        guard hasTrailers else { return }
        unsafe self.set(CURLOPT_TRAILERDATA, pointer: context)
        self.note(
            unsafe ccurl_set_trailer_callback(
                self.pointer, CURLOPT_TRAILERFUNCTION, Self.trailerCallback))
    }

    static func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<EasyHandle>.fromOpaque(context)._withUnsafeGuaranteedRef {
            $0.transfer
        }
    }

    /// `size * count`, the way the stdio functions have it; 0 ends the transfer.
    private static let headerCallback: ccurl_transfer_callback = { bytes, size, count, context in
        guard let transfer = unsafe EasyHandle.transfer(context) else { return 0 }
        let line = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
        return unsafe transfer.line(line) ? line.count : 0
    }

    private static let writeCallback: ccurl_transfer_callback = { bytes, size, count, context in
        guard let transfer = unsafe EasyHandle.transfer(context) else { return 0 }
        let piece = unsafe UnsafeRawBufferPointer(start: bytes, count: size * count)
        return switch unsafe transfer.body(piece) {
        case .taken: piece.count
        case .hold: Int(ccurl_writefunc_pause)
        case .abort: 0
        }
    }

    private static let readCallback: ccurl_transfer_callback = { bytes, size, count, context in
        guard let transfer = unsafe EasyHandle.transfer(context) else {
            return Int(ccurl_readfunc_abort)
        }
        let room = unsafe UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
        return switch unsafe transfer.fill(room) {
        case .bytes(let count): count
        case .pause: Int(ccurl_readfunc_pause)
        case .end: 0
        case .abort: Int(ccurl_readfunc_abort)
        }
    }

    /// libcurl goes back to the beginning where it sends a request again with a login.
    private static let seekCallback: ccurl_seek_callback = { context, offset, origin in
        guard offset == 0, origin == SEEK_SET,
            let content = unsafe EasyHandle.transfer(context)?.content
        else { return Int32(CURL_SEEKFUNC_CANTSEEK) }
        return Int32(content.rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL)
    }

    private static let prereqCallback: ccurl_prereq_callback = { context, address, _, port, _ in
        guard let transfer = unsafe EasyHandle.transfer(context) else {
            return Int32(CURL_PREREQFUNC_ABORT)
        }
        let text = unsafe address.map { unsafe String(cString: $0) } ?? ""
        let allowed = transfer.requestBegins(address: text, port: port)
        return Int32(allowed ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT)
    }

    /// "Returning non-zero from the callback causes the resolve operation to fail"
    /// (CURLOPT_RESOLVER_START_FUNCTION(3)).
    private static let resolverStartCallback: ccurl_resolver_start_callback = { _, _, context in
        guard let transfer = unsafe EasyHandle.transfer(context) else { return 0 }
        return transfer.resolutionBegan() ? 0 : 1
    }

    private static let openSocketCallback: ccurl_opensocket_callback = { context, _, address in
        guard let transfer = unsafe EasyHandle.transfer(context), let address = unsafe address,
            unsafe transfer.mayTry(address)
        else { return ccurl_socket_bad }
        let descriptor = unsafe transfer.loop.poller.open(
            address.pointee, isPlain: transfer.isPlain, isLoopback: Transfer.isLoopback(address),
            trafficClass: transfer.options.trafficClass)
        if descriptor >= 0 { transfer.socketOpened() }
        return descriptor
    }

    private static let closeSocketCallback: ccurl_closesocket_callback = { context, descriptor in
        guard let context = unsafe context else { return close(descriptor) }
        return unsafe Unmanaged<SocketPoller>.fromOpaque(context).takeUnretainedValue()
            .close(descriptor)
    }

    /// libcurl's remarks, for one of them: that it threw away bytes behind the end of a response.
    ///
    /// It ends the connection by itself only where they follow content of announced length.
    /// Behind chunked or no content it drops what it has read and keeps the connection, and says
    /// so nowhere else. `listenForExcess` turns the remarks on.
    private static let debugCallback: ccurl_debug_callback = { _, kind, text, count, context in
        guard kind == CURLINFO_TEXT, let transfer = unsafe EasyHandle.transfer(context) else {
            return 0
        }
        let remark = unsafe UnsafeRawBufferPointer(start: text, count: count)
        if unsafe remark.starts(with: "Excess found".utf8)
            || remark.starts(with: "Leftovers after chunking".utf8)
        {
            transfer.easy?.set(CURLOPT_FORBID_REUSE, true)
        }
        return 0
    }

    /// Has a response without content of announced length end its connection if more follows it.
    ///
    /// Called when the head is complete, so that other responses do not pay for the remarks.
    func listenForExcess() {
        let profile = self.profile
        self.set(CURLOPT_VERBOSE, true)
        // Taken back when the handle is retired.
        self.isSet(for: profile)
        self.isListening = true
    }

    /// libcurl frees the list that it is given here.
    private static let trailerCallback: ccurl_trailer_callback = { list, context in
        guard let transfer = unsafe EasyHandle.transfer(context), let list = unsafe list,
            let trailers = transfer.content?.trailers
        else { return Int32(CURL_TRAILERFUNC_OK) }
        for (name, value) in trailers.pairs {
            guard let longer = unsafe curl_slist_append(list.pointee, "\(name): \(value)") else {
                return Int32(CURL_TRAILERFUNC_ABORT)
            }
            unsafe list.pointee = longer
        }
        return Int32(CURL_TRAILERFUNC_OK)
    }
}
