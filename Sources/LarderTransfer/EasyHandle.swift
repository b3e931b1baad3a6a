import CCurl
import Glibc
import LarderHTTP

/// The one owner of a curl easy handle: typed options, pause, facts.
///
/// Not `Sendable`: belongs to the loop whose multi handle it is added to, and is used anew for one
/// transfer after the other. Options that fail are remembered and reported once by `firstError`,
/// so that setting thirty of them reads as thirty lines. What `OptionProfile` describes may stay set
/// from one transfer to the next; everything else is forgotten with the transfer.
@safe final class EasyHandle {
    private(set) var pointer: UnsafeMutableRawPointer
    let fields = RequestFieldList()
    /// What `fields` was made of and libcurl has, where the next request may want the same; nil: it is made
    /// anew.
    var listed: Fields?
    /// The field lines of the CONNECT to a parent.
    let parentFields = RequestFieldList()
    private let errorText: UnsafeMutablePointer<CChar>
    /// The first option that was refused since `reset`.
    private(set) var firstError = CURLE_OK
    /// Nothing was set since `reset`.
    private var isReset = false
    /// libcurl's remarks are turned on.
    var isListening = false
    /// What the options are set for; nil after any that this does not describe.
    private(set) var profile: OptionProfile?
    /// Set in the transfer before, and to be taken back by the next (`connectAnew`).
    var connectsAnew = false
    /// What CURLOPT_RESOLVE(3) was given, which libcurl does not copy.
    private var forgotten: UnsafeMutablePointer<curl_slist>?
    /// Whom the URL names, where that may be the same for the next transfer.
    private(set) var origin: OriginURL?
    /// Whose callbacks libcurl calls, with this handle as their context: never a pointer to a transfer
    /// that may have gone.
    var transfer: Transfer?

    init(share: SharedState) throws(TransferError) {
        guard let pointer = unsafe curl_easy_init() else {
            throw TransferError(.library, detail: "curl_easy_init returned no handle")
        }
        unsafe self.pointer = pointer
        unsafe self.errorText = .allocate(capacity: ccurl_error_size)
        unsafe self.errorText.initialize(repeating: 0, count: ccurl_error_size)
        // "It does not change … live connections, the Session ID cache, the DNS cache, the
        // cookies, the shares": this survives every curl_easy_reset(3).
        unsafe self.set(CURLOPT_SHARE, pointer: share.pointer)
        guard self.firstError == CURLE_OK else {
            throw .library("CURLOPT_SHARE", self.firstError)
        }
    }

    /// Puts another of libcurl's handles with the same options in place of the one it has, which
    /// remembers the last response (`CurlLibrary.forgetsFields`): a microsecond.
    ///
    /// - Returns: false where there is none to be had; this one must not be used again then.
    func renew(share: SharedState) -> Bool {
        guard let copy = unsafe curl_easy_duphandle(self.pointer) else { return false }
        unsafe curl_easy_cleanup(self.pointer)
        unsafe self.pointer = copy
        guard unsafe ccurl_set_pointer(copy, CURLOPT_SHARE, share.pointer) == CURLE_OK else {
            return false
        }
        // As text once more: from what it takes for a copy of it, libcurl would put it together anew.
        guard let origin = self.origin else { return true }
        return unsafe ccurl_set_string(copy, CURLOPT_URL, origin.text) == CURLE_OK
    }

    deinit {
        unsafe curl_easy_cleanup(self.pointer)
        unsafe curl_slist_free_all(self.forgotten)
        unsafe self.errorText.deallocate()
    }

    /// Makes sure that nothing is set, before options are.
    func resetIfUsed() {
        if !self.isReset { self.reset() }
        self.isReset = false
    }

    /// Says what the options are set for, when all of them are.
    func isSet(for profile: OptionProfile?) {
        self.profile = self.firstError == CURLE_OK ? profile : nil
    }

    /// Forgets the transfer before: all of it, or all but options that the next one will want, too.
    ///
    /// - Parameter mayKeep: nothing happened in the transfer that libcurl counts in the handle.
    func retire(mayKeep: Bool) {
        self.transfer = nil
        guard mayKeep, let profile = self.profile else { return self.reset() }
        if self.listed == nil {
            self.fields.removeAll()
            self.note(unsafe ccurl_set_list(self.pointer, CURLOPT_HTTPHEADER, nil))
        }
        self.note(unsafe ccurl_set_string(self.pointer, CURLOPT_REQUEST_TARGET, nil))
        unsafe self.errorText[0] = 0
        if self.isListening {
            self.set(CURLOPT_VERBOSE, false)
            self.isListening = false
        }
        self.isSet(for: profile)
    }

    /// Forgets everything of the transfer before.
    private func reset() {
        unsafe curl_easy_reset(self.pointer)
        self.firstError = CURLE_OK
        unsafe curl_slist_free_all(self.forgotten)
        unsafe self.forgotten = nil
        self.listed = nil
        self.fields.removeAll()
        self.parentFields.removeAll()
        unsafe self.errorText[0] = 0
        self.note(unsafe ccurl_set_pointer(self.pointer, CURLOPT_ERRORBUFFER, self.errorText))
        self.profile = nil
        self.connectsAnew = false
        self.origin = nil
        self.isListening = false
        self.isReset = true
    }

    /// Sets the URL of requests that go to their origin directly.
    ///
    /// libcurl gets it taken apart, and as text for what it tells of it.
    func setOrigin(_ uri: TargetURI) {
        let origin = OriginURL(uri)
        self.set(CURLOPT_URL, origin.text)
        // Without one libcurl parses the text, and says what is wrong with it.
        unsafe self.set(
            CURLOPT_CURLU, pointer: origin.pointer.map { unsafe UnsafeMutableRawPointer($0) })
        self.origin = origin
    }

    /// What libcurl says of a failure: one line, perhaps empty.
    var errorDetail: String {
        let text = unsafe String(cString: self.errorText)
        return String(
            text.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7F ? " " : Character($0) })
    }

    /// Every option ends here.
    func note(_ code: CURLcode) {
        self.profile = nil
        if self.firstError == CURLE_OK { self.firstError = code }
    }

    // MARK: Options

    func set(_ option: CURLoption, _ value: Int) {
        self.note(unsafe ccurl_set_long(self.pointer, option, value))
    }

    func set(_ option: CURLoption, _ value: Bool) {
        self.set(option, value ? 1 : 0)
    }

    func set(_ option: CURLoption, offset value: Int64) {
        self.note(unsafe ccurl_set_offset(self.pointer, option, curl_off_t(value)))
    }

    /// Sets a string, which libcurl copies.
    func set(_ option: CURLoption, _ value: String) {
        // Handed over as it is, a short text would become an array first.
        unsafe value.withCString { text in
            self.note(unsafe ccurl_set_string(self.pointer, option, text))
        }
    }

    /// Sets a secret, and overwrites the octets it was given and the copy that it makes.
    ///
    /// libcurl keeps a copy until `reset`, and its connection another as long as it lives; neither is
    /// overwritten when it is freed, which is beyond us.
    func set(_ option: CURLoption, wiping octets: inout [UInt8]) {
        guard !octets.contains(0) else {
            self.note(CURLE_BAD_FUNCTION_ARGUMENT)
            return
        }
        octets.append(0)
        unsafe octets.withUnsafeMutableBytes { bytes in
            guard let address = bytes.baseAddress else { return }
            let text = unsafe address.assumingMemoryBound(to: CChar.self)
            self.note(unsafe ccurl_set_string(self.pointer, option, text))
            unsafe explicit_bzero(address, bytes.count)
        }
        octets = []
    }

    func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) {
        self.note(unsafe ccurl_set_pointer(self.pointer, option, value))
    }

    /// Has libcurl forget what it knows of a name when the transfer begins, once between two resets.
    ///
    /// - Parameter name: with the port, as in `host:80`.
    func forgetName(_ name: String) {
        guard unsafe self.forgotten == nil, let list = unsafe curl_slist_append(nil, "-\(name)")
        else { return self.note(CURLE_OUT_OF_MEMORY) }
        unsafe self.forgotten = list
        self.note(unsafe ccurl_set_list(self.pointer, CURLOPT_RESOLVE, list))
    }

    /// Hands the field lines over, which must not change until the transfer is over.
    func useFields() {
        self.note(unsafe ccurl_set_list(self.pointer, CURLOPT_HTTPHEADER, self.fields.link()))
    }

    /// Hands the field lines of the CONNECT to a parent over.
    func useParentFields() {
        self.note(
            unsafe ccurl_set_list(self.pointer, CURLOPT_PROXYHEADER, self.parentFields.link()))
    }

    /// Stops or lets go both directions (curl_easy_pause(3)); may run callbacks before it returns.
    func pause(receiving: Bool, sending: Bool) -> CURLcode {
        let mask = (receiving ? CURLPAUSE_RECV : 0) | (sending ? CURLPAUSE_SEND : 0)
        return unsafe curl_easy_pause(self.pointer, mask)
    }

    // MARK: Facts

    func number(_ info: CURLINFO) -> Int? {
        var value = 0
        return unsafe ccurl_get_long(self.pointer, info, &value) == CURLE_OK ? value : nil
    }

    /// The socket of a transfer that was only to connect, lent (CURLINFO_ACTIVESOCKET(3)).
    var activeSocket: Int32? {
        var socket = ccurl_socket_bad
        let code = unsafe ccurl_get_socket(self.pointer, CURLINFO_ACTIVESOCKET, &socket)
        return code == CURLE_OK && socket >= 0 ? socket : nil
    }

    func offset(_ info: CURLINFO) -> Int64? {
        var value: curl_off_t = 0
        return unsafe ccurl_get_offset(self.pointer, info, &value) == CURLE_OK ? Int64(value) : nil
    }
}

/// What the easy handles of one loop have in common beside their connections: TLS sessions, so that
/// a new connection to a known origin resumes one.
///
/// Without lock functions (curl_share_setopt(3)), because one thread alone uses it.
@safe final class SharedState {
    let pointer: UnsafeMutableRawPointer

    init() throws(TransferError) {
        guard let pointer = unsafe curl_share_init() else {
            throw TransferError(.library, detail: "curl_share_init returned no handle")
        }
        unsafe self.pointer = pointer
        let code = unsafe ccurl_share_enable(pointer, CURL_LOCK_DATA_SSL_SESSION)
        guard code == CURLSHE_OK else {
            throw TransferError(.library, detail: "CURLSHOPT_SHARE: error \(code.rawValue)")
        }
    }

    deinit {
        // In use still (CURLSHE_IN_USE) it would be leaked; the loop frees its handles first.
        _ = unsafe curl_share_cleanup(self.pointer)
    }
}
