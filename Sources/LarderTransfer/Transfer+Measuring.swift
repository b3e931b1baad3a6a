import CCurl
import COpenSSL
import LarderHTTP

/// What a transfer's observer is told of it.
extension Transfer {
    /// What is measured of it: apart from the transfer, as it is large and most have none.
    final class Measuring {
        fileprivate(set) var measurement: TransferMeasurement
        /// When the first line of the final response came: libcurl 7.88 takes the first byte of content
        /// that it sends for the beginning of the answer.
        var responseBegan: MonotonicTime?

        init(begun: Timestamp) {
            self.measurement = TransferMeasurement(begun: begun)
        }
    }

    /// Tells how much of the content has gone out, if that is more than was told before.
    func tellSent() {
        guard let observer = self.observer, let content = self.content,
            content.sent > self.toldSent
        else { return }
        self.toldSent = content.sent
        observer.transfer(sent: content.sent)
    }

    /// Tells what it took; the last thing that is heard of a transfer, whatever became of it.
    func tellMeasurement() {
        guard !self.isMeasured else { return }
        self.isMeasured = true
        self.observer?.transfer(measured: self.measuring?.measurement ?? .none)
    }

    /// Notes what TLS was agreed on; while libcurl performs the transfer.
    func noteTLS(_ tls: OpaquePointer) {
        guard let measuring = self.measuring else { return }
        measuring.measurement.tlsVersion = UInt16(exactly: unsafe SSL_version(tls))
        if let cipher = unsafe SSL_get_current_cipher(tls) {
            measuring.measurement.tlsCipherSuite = unsafe SSL_CIPHER_get_protocol_id(cipher)
        }
    }

    /// Takes what libcurl knows of a transfer that it is about to let go of.
    func measure(_ easy: EasyHandle) {
        guard let measuring = self.measuring else { return }
        var measurement = measuring.measurement
        self.measureMoments(easy, &measurement)
        measurement.protocolName =
            switch UInt32(clamping: easy.number(CURLINFO_HTTP_VERSION) ?? 0) {
            case UInt32(CURL_HTTP_VERSION_1_0): "http/1.0"
            case UInt32(CURL_HTTP_VERSION_1_1): "http/1.1"
            case UInt32(CURL_HTTP_VERSION_2_0): "h2"
            case UInt32(CURL_HTTP_VERSION_3): "h3"
            default: nil
            }
        measurement.isReusedConnection = self.hasBegunRequest && !self.hasOpenedSocket
        measurement.isProxyConnection = self.way.parent != nil
        measurement.requestHeadBytes = UInt64(clamping: easy.number(CURLINFO_REQUEST_SIZE) ?? 0)
        measurement.responseHeadBytes = UInt64(clamping: easy.number(CURLINFO_HEADER_SIZE) ?? 0)
        measurement.requestBodyBytes = UInt64(clamping: easy.offset(CURLINFO_SIZE_UPLOAD_T) ?? 0)
        measurement.responseBodyBytes = UInt64(
            clamping: easy.offset(CURLINFO_SIZE_DOWNLOAD_T) ?? 0)
        if self.hasBegunRequest {
            measurement.localAddress = easy.text(CURLINFO_LOCAL_IP)
            measurement.remoteAddress = easy.text(CURLINFO_PRIMARY_IP)
            measurement.localPort = easy.number(CURLINFO_LOCAL_PORT).flatMap(UInt16.init(exactly:))
            measurement.remotePort = easy.number(CURLINFO_PRIMARY_PORT).flatMap(
                UInt16.init(exactly:))
        }
        measuring.measurement = measurement
    }

    /// libcurl's moments count from when it took the transfer up (curl_easy_getinfo(3), "TIMES"), and
    /// are 0 for what was not reached.
    private func measureMoments(_ easy: EasyHandle, _ measurement: inout TransferMeasurement) {
        let begun = self.launched.duration(since: self.started)
        func moment(_ info: CURLINFO) -> Duration? {
            guard let microseconds = easy.offset(info), microseconds > 0 else { return nil }
            return begun + .microseconds(microseconds)
        }
        if self.hasOpenedSocket {
            let named = moment(CURLINFO_NAMELOOKUP_TIME_T)
            let connected = moment(CURLINFO_CONNECT_TIME_T)
            let secured = moment(CURLINFO_APPCONNECT_TIME_T)
            measurement.nameLookupStarted = begun
            measurement.nameLookupEnded = named
            measurement.connectStarted = named
            measurement.connectEnded = connected
            if self.scheme == .https, let connected {
                measurement.secureConnectionStarted = connected
                measurement.secureConnectionEnded = secured
                measurement.connectEnded = secured
            }
        }
        guard self.hasBegunRequest, let sent = moment(CURLINFO_PRETRANSFER_TIME_T) else { return }
        measurement.requestStarted = sent
        let response =
            self.content == nil
            ? moment(CURLINFO_STARTTRANSFER_TIME_T)
            : self.measuring?.responseBegan.map { $0.duration(since: self.started) }
        let isSent = self.content?.isOver ?? true
        if isSent {
            let last = self.lastSent.map { $0.duration(since: self.started) } ?? sent
            measurement.requestEnded = Swift.max(
                sent, response.map { Swift.min($0, last) } ?? last)
        }
        guard self.hasHead else { return }
        measurement.responseStarted = response
        guard self.isWhole, let ended = moment(CURLINFO_TOTAL_TIME_T) else { return }
        measurement.responseEnded = Swift.max(ended, response ?? ended)
    }
}

extension TransferMeasurement {
    /// Of what nobody looks at.
    static var none: TransferMeasurement { TransferMeasurement(begun: Timestamp(seconds: 0)) }
}

extension MonotonicTime {
    func duration(since earlier: MonotonicTime) -> Duration {
        guard self > earlier else { return .zero }
        return .nanoseconds(Int64(clamping: self.nanoseconds - earlier.nanoseconds))
    }
}
