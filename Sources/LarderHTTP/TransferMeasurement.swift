/// What one request took at its upstream.
///
/// Moments are durations since `begun`; nil where that did not happen (a reused connection looks no
/// name up) or did not come to its end.
package struct TransferMeasurement: Sendable, Equatable {
    package var begun: Timestamp
    package var nameLookupStarted: Duration?
    package var nameLookupEnded: Duration?
    package var connectStarted: Duration?
    package var secureConnectionStarted: Duration?
    package var secureConnectionEnded: Duration?
    package var connectEnded: Duration?
    package var requestStarted: Duration?
    package var requestEnded: Duration?
    package var responseStarted: Duration?
    package var responseEnded: Duration?

    /// The protocol's name as ALPN has it ("http/1.1", "h2", "h3"); nil: none was spoken.
    package var protocolName: String?
    package var isReusedConnection = false
    package var isProxyConnection = false
    package var requestHeadBytes: UInt64 = 0
    package var requestBodyBytes: UInt64 = 0
    package var responseHeadBytes: UInt64 = 0
    /// As they came, before content codings were undone.
    package var responseBodyBytes: UInt64 = 0
    package var localAddress: String?
    package var localPort: UInt16?
    package var remoteAddress: String?
    package var remotePort: UInt16?
    /// The number of the protocol's version (0x0304 is TLS 1.3), and of the cipher suite (IANA).
    package var tlsVersion: UInt16?
    package var tlsCipherSuite: UInt16?

    package init(begun: Timestamp) {
        self.begun = begun
    }
}
