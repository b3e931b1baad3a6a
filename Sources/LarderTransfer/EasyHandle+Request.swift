import CCurl
import LarderHTTP

/// A request put into libcurl's options. libcurl's own cleverness stays off: it neither follows,
/// remembers, decodes nor adds a field that the request does not have, and authenticates only
/// where it was given a login to do so.
extension EasyHandle {
    /// So much brings a response of 100 KiB with its head at once.
    ///
    /// libcurl allocates it for each transfer: from 128 KiB on it would be a mapping of its own, page
    /// faults each time.
    private static let readSize = 122_880
    /// How many seconds an FTP server has for each reply: other fetches by FTP may wait meanwhile.
    ///
    /// libcurl's own 120 would be long for them. Servers that look up the client's name, or ask it for
    /// its user, before they greet take up to ten.
    private static let ftpReplyTime = 20

    /// Sets every option for a transfer anew, or those alone that differ from the one before.
    ///
    /// Throws where the request cannot be sent as it stands: an authority or a target that would
    /// not reach the origin byte for byte, a method that no fetch can have.
    func prepare(
        for transfer: Transfer, _ profile: OptionProfile?
    ) throws(UpstreamFailure) {
        let request = transfer.request
        let isSet = profile != nil && profile == self.profile
        let uri = request.uri
        let keepsURL = isSet && self.origin?.isOf(uri) == true
        try RequestChecks.check(
            request, isDial: transfer.dial != nil, knowsHost: keepsURL)
        self.transfer = transfer
        if isSet {
            if self.connectsAnew { self.connectAnew(false) }
            if !keepsURL { self.setOrigin(uri) }
            self.set(CURLOPT_REQUEST_TARGET, uri.pathAndQuery)
            // What is listed begins with the host.
            if !keepsURL || self.listed.map({ $0.isIdentical(to: request.fields) }) != true {
                self.fields.removeAll()
                self.listed = nil
                try self.setFields(transfer, isPlain: true)
            }
        } else {
            try self.setAll(for: transfer, profile, transfer.loop.configuration)
            if profile != nil { self.setOrigin(uri) }
        }
        if profile != nil, !CurlLibrary.forgetsFields {
            transfer.assembler.guardFirstField()
            self.showsHeads(true)
        }
        guard self.firstError == CURLE_OK else {
            let error = TransferError.library("curl_easy_setopt", self.firstError)
            throw UpstreamFailure(.proxyInternalError, party: .larder, detail: error.detail)
        }
        self.isSet(for: profile)
    }

    /// Whether libcurl's write callback gets heads, too (CURLOPT_HEADER(3)); also in the midst of a transfer.
    func showsHeads(_ shows: Bool) {
        self.setBeside(CURLOPT_HEADER, shows)
    }

    /// Whether libcurl makes a connection for whatever it sends from now on, instead of using one that is
    /// idle (CURLOPT_FRESH_CONNECT(3)); in the midst of an attempt it concerns the next.
    func connectAnew(_ isNew: Bool) {
        self.setBeside(CURLOPT_FRESH_CONNECT, isNew)
        self.connectsAnew = isNew
    }

    /// Sets what is no option of a profile, as each transfer does for itself.
    private func setBeside(_ option: CURLoption, _ value: Bool) {
        let profile = self.profile
        self.set(option, value)
        self.isSet(for: profile)
    }

    private func setAll(
        for transfer: Transfer, _ profile: OptionProfile?, _ configuration: TransferConfiguration
    ) throws(UpstreamFailure) {
        let request = transfer.request
        self.resetIfUsed()
        self.setBounds(configuration)
        self.setCallbacks(transfer)
        self.setTLS(transfer, configuration)
        try self.setParent(transfer, configuration)
        if transfer.dial != nil {
            self.setDial(request)
        } else if transfer.isFTP {
            try self.setFTP(request)
        } else {
            try self.setExchange(transfer, isPlain: profile != nil)
        }
        self.setOptions(transfer)
    }

    private func setExchange(_ transfer: Transfer, isPlain: Bool) throws(UpstreamFailure) {
        let request = transfer.request
        self.setHTTP(transfer)
        self.setDecoding(request)
        if transfer.options.priority != 0.5 {
            self.set(CURLOPT_STREAM_WEIGHT, Self.weight(of: transfer.options.priority))
        }
        self.setMethod(request, hasContent: transfer.content != nil)
        try self.setFields(transfer, isPlain: isPlain)
        if let content = transfer.content { self.setContent(content, transfer) }
        if transfer.hasLargeHead { self.makeRoom(forHeadOf: RequestChecks.headSize(request)) }
        // A reused connection may die under the request, and libcurl would send it again.
        if !transfer.mayBeResent { self.set(CURLOPT_FRESH_CONNECT, true) }
        if transfer.logsConnectionIn {
            self.setOwnConnection()
        }
        if let authentication = request.connectionAuthentication {
            self.setAuthentication(authentication, transfer.way)
        }
    }

    private func setBounds(_ configuration: TransferConfiguration) {
        // Without it libcurl handles SIGPIPE by changing the process's signal actions.
        self.set(CURLOPT_NOSIGNAL, true)
        // Threads of getaddrinfo(3) are detached instead of joined when a transfer ends early:
        // joining would hold up all transfers of the loop until the resolver gives up.
        self.set(CURLOPT_QUICK_EXIT, true)
        self.set(CURLOPT_FOLLOWLOCATION, false)
        self.set(CURLOPT_MAXREDIRS, 0)
        self.set(CURLOPT_BUFFERSIZE, Self.readSize)
        self.set(CURLOPT_TCP_NODELAY, true)
        self.set(CURLOPT_TCP_KEEPALIVE, true)
        // Behind our own limits, should a phase have gone unnoticed.
        self.set(
            CURLOPT_CONNECTTIMEOUT_MS,
            (configuration.resolveTimeout
                + max(configuration.connectTimeout, configuration.tunnelTimeout) + .seconds(1))
                .inMilliseconds)
        self.set(CURLOPT_MAXAGE_CONN, Int(clamping: configuration.idleConnectionLifetime.inSeconds))
        self.set(CURLOPT_DNS_CACHE_TIMEOUT, Int(clamping: configuration.nameLifetime.inSeconds))
    }

    private func setHTTP(_ transfer: Transfer) {
        let (request, way) = (transfer.request, transfer.way)
        let uri = request.uri
        self.set(CURLOPT_PROTOCOLS_STR, way.isRelay ? "http" : uri.scheme.rawValue)
        self.setTarget(request, way)
        self.set(CURLOPT_PATH_AS_IS, true)
        self.set(CURLOPT_HTTP09_ALLOWED, false)
        self.set(CURLOPT_HTTP_CONTENT_DECODING, false)
        let version = transfer.mayBeHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
        self.set(CURLOPT_HTTP_VERSION, Int(version))
        // What waits for others to make a connection does so in `ConnectionQueue`.
        self.set(CURLOPT_PIPEWAIT, false)
    }

    /// The URL only names the origin; the target goes out byte for byte. (A login by Digest is computed
    /// over path and query of the URL, by libcurl's habit.)
    private func setTarget(_ request: Request, _ way: Way) {
        let uri = request.uri
        let scheme = way.isRelay ? "http" : uri.scheme.rawValue
        let path = way.isRelay && uri.pathAndQuery != "*" ? uri.pathAndQuery : "/"
        self.set(CURLOPT_URL, "\(scheme)://\(uri.host):\(uri.port)\(path)")
        self.set(CURLOPT_REQUEST_TARGET, way.isRelay ? uri.absoluteForm : uri.pathAndQuery)
    }

    private func setMethod(_ request: Request, hasContent: Bool) {
        if hasContent {
            self.set(CURLOPT_UPLOAD, true)
            self.set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
        } else if request.method == .head {
            self.set(CURLOPT_NOBODY, true)
        } else {
            self.set(CURLOPT_HTTPGET, true)
            if request.method != .get {
                self.set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
            }
        }
    }

    /// - Parameter isPlain: libcurl has no field of its own to add, and puts none in front of ours: all
    ///   lines are one entry then, where it takes such, and what it would make by itself it is told to
    ///   leave out.
    private func setFields(_ transfer: Transfer, isPlain: Bool) throws(UpstreamFailure) {
        let (request, content) = (transfer.request, transfer.content)
        let joins = transfer.loop.port.configuration.joinsFieldLines
        let isPlain = isPlain && joins
        let isWithheld = content?.isWithheld == true
        if isPlain { self.fields.suppress("Host") }
        let authority = self.origin?.authority ?? request.uri.authority
        var safe = self.fields.append("Host".utf8.span, authority.utf8.span)
        if isWithheld {
            // In the same entry the field goes out, but libcurl does not know of it. It would else answer
            // a 417 by sending the request again by itself and throwing the origin's explanation away,
            // which no option prevents. The waiting that goes with it is done by `RequestContent`.
            // A libcurl that refuses such entries has its way.
            safe =
                self.fields.append(
                    "Expect".utf8.span, "100-continue".utf8.span, isJoined: joins) && safe
        }
        var seesAccept = false
        var seesAcceptEncoding = false
        var isOrdinary = true
        let section = request.fields
        for line in section.lines {
            switch line.known {
            case .host, .contentLength, .transferEncoding, .expect, .connection, .keepAlive,
                .proxyConnection, .upgrade, .http2Settings:
                continue  // The upstream's own.
            case .proxyAuthorization:
                continue  // Between us and the parent.
            case .authorization where request.connectionAuthentication != nil:
                continue  // The handshake's place.
            case .accept:
                seesAccept = !isPlain
            case .acceptEncoding:
                seesAcceptEncoding = !isPlain
            case .acceptLanguage, .userAgent, .cacheControl, .pragma:
                break
            default:
                // It may be a secret, of which no copy stays that nobody needs.
                isOrdinary = false
            }
            safe = self.fields.append(line, of: section, isJoined: isPlain) && safe
        }
        if !seesAccept { self.fields.suppress("Accept") }
        // CURLOPT_ACCEPT_ENCODING(3) adds the field, unless there is one already.
        if transfer.options.decodesContent, !seesAcceptEncoding {
            self.fields.suppress("Accept-Encoding")
        }
        if transfer.way.isRelay { self.fields.suppress("Proxy-Connection") }
        if content == nil {
            if RequestChecks.announcesEmptyContent(request) {
                safe = self.fields.append("Content-Length".utf8.span, "0".utf8.span) && safe
            }
        } else if joins || !isWithheld {
            self.fields.suppress("Expect")
        }
        guard safe else {
            throw UpstreamFailure(
                .proxyInternalError, party: .client, cause: .badURL,
                detail: "a field line with bytes that none may have")
        }
        self.useFields()
        if isPlain, isOrdinary, section.hasNothingBeside { self.listed = section }
    }

    /// Has libcurl hand over a large head at once, which it does not get to its end over TLS in pieces of
    /// its usual 64 KiB.
    private func makeRoom(forHeadOf size: Int) {
        // Host, logins and what libcurl adds have room in as much again. (The option ends at 2 MiB.)
        self.set(CURLOPT_UPLOAD_BUFFERSIZE, 2 * size)
    }

    private func setContent(_ content: RequestContent, _ transfer: Transfer) {
        // -1 is "not known": chunked over HTTP/1.1, just data frames over HTTP/2.
        let length = content.length.map { Int64(clamping: $0) } ?? -1
        self.set(CURLOPT_INFILESIZE_LARGE, offset: length)
        self.setContentCallbacks(hasTrailers: transfer.mayHaveTrailers)
    }

    /// Has the request go out on a connection that was not used before and is not used again.
    ///
    /// A dial has such a one anyhow: libcurl takes none that it has for CURLOPT_CONNECT_ONLY, gives none to
    /// another transfer, and closes it with the handle. If it were forbidden to, it would close it as soon
    /// as it stands, before anybody could take the socket.
    func setOwnConnection() {
        self.set(CURLOPT_FRESH_CONNECT, true)
        if self.transfer?.dial == nil { self.set(CURLOPT_FORBID_REUSE, true) }
    }

    private func setFTP(_ request: Request) throws(UpstreamFailure) {
        let uri = request.uri
        self.set(CURLOPT_PROTOCOLS_STR, "ftp")
        // A control connection of its own for each transfer: on one that was used before, libcurl
        // 7.88 now and then waits in vain for the data connection of a listing.
        self.setOwnConnection()
        self.set(CURLOPT_SERVER_RESPONSE_TIMEOUT, Self.ftpReplyTime)
        self.set(CURLOPT_URL, "ftp://\(uri.host):\(uri.port)\(uri.pathAndQuery)")
        self.set(CURLOPT_FILETIME, request.transfer.asksFTPDate)
        if request.method == .head { self.set(CURLOPT_NOBODY, true) }
        guard let userInfo = uri.userInfo else { return }  // libcurl logs in as anonymous.
        guard let login = PercentCoding.login(userInfo) else {
            throw UpstreamFailure(
                .destinationNotFound, party: .client, cause: .badURL,
                detail: "user information that is no text")
        }
        self.set(CURLOPT_USERNAME, login.user)
        self.set(CURLOPT_PASSWORD, login.password)
    }
}
