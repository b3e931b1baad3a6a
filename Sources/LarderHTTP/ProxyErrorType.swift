/// The proxy error types of RFC 9209 §2.3, and the status that each recommends.
package enum ProxyErrorType: String, Sendable, CaseIterable {
    case dnsTimeout = "dns_timeout"
    case dnsError = "dns_error"
    case destinationNotFound = "destination_not_found"
    case destinationUnavailable = "destination_unavailable"
    case destinationIPProhibited = "destination_ip_prohibited"
    case destinationIPUnroutable = "destination_ip_unroutable"
    case connectionRefused = "connection_refused"
    case connectionTerminated = "connection_terminated"
    case connectionTimeout = "connection_timeout"
    case connectionReadTimeout = "connection_read_timeout"
    case connectionWriteTimeout = "connection_write_timeout"
    case connectionLimitReached = "connection_limit_reached"
    case tlsProtocolError = "tls_protocol_error"
    case tlsCertificateError = "tls_certificate_error"
    case tlsAlertReceived = "tls_alert_received"
    case httpRequestError = "http_request_error"
    case httpRequestDenied = "http_request_denied"
    case httpResponseIncomplete = "http_response_incomplete"
    case httpResponseHeaderSectionSize = "http_response_header_section_size"
    case httpResponseHeaderSize = "http_response_header_size"
    case httpResponseBodySize = "http_response_body_size"
    case httpResponseTrailerSectionSize = "http_response_trailer_section_size"
    case httpResponseTrailerSize = "http_response_trailer_size"
    case httpResponseTransferCoding = "http_response_transfer_coding"
    case httpResponseContentCoding = "http_response_content_coding"
    case httpResponseTimeout = "http_response_timeout"
    case httpUpgradeFailed = "http_upgrade_failed"
    case httpProtocolError = "http_protocol_error"
    case proxyInternalResponse = "proxy_internal_response"
    case proxyInternalError = "proxy_internal_error"
    case proxyConfigurationError = "proxy_configuration_error"
    case proxyLoopDetected = "proxy_loop_detected"

    /// The recommended status; nil where it is that of the mistake at hand.
    package var recommendedStatus: StatusCode? {
        switch self {
        case .httpRequestError, .proxyInternalResponse: nil
        case .httpRequestDenied: StatusCode(403)
        case .destinationNotFound, .proxyInternalError, .proxyConfigurationError: StatusCode(500)
        case .destinationUnavailable, .connectionLimitReached: .serviceUnavailable
        case .dnsTimeout, .connectionTimeout, .connectionReadTimeout, .connectionWriteTimeout,
            .httpResponseTimeout:
            .gatewayTimeout
        case .dnsError, .destinationIPProhibited, .destinationIPUnroutable, .connectionRefused,
            .connectionTerminated, .tlsProtocolError, .tlsCertificateError, .tlsAlertReceived,
            .httpResponseIncomplete, .httpResponseHeaderSectionSize, .httpResponseHeaderSize,
            .httpResponseBodySize, .httpResponseTrailerSectionSize, .httpResponseTrailerSize,
            .httpResponseTransferCoding, .httpResponseContentCoding, .httpUpgradeFailed,
            .httpProtocolError, .proxyLoopDetected:
            .badGateway
        }
    }
}

extension UpstreamFailure.Kind {
    /// The error type under which RFC 9209 §2.3 registers it.
    package var errorType: ProxyErrorType {
        switch self {
        case .dnsTimeout: .dnsTimeout
        case .dnsError: .dnsError
        case .destinationNotFound: .destinationNotFound
        case .destinationUnavailable: .destinationUnavailable
        case .destinationIPUnroutable: .destinationIPUnroutable
        case .connectionRefused: .connectionRefused
        case .connectionTerminated: .connectionTerminated
        case .connectionTimeout: .connectionTimeout
        case .connectionReadTimeout: .connectionReadTimeout
        case .connectionWriteTimeout: .connectionWriteTimeout
        case .connectionLimitReached: .connectionLimitReached
        case .tlsProtocolError: .tlsProtocolError
        case .tlsCertificateError: .tlsCertificateError
        case .httpResponseIncomplete: .httpResponseIncomplete
        case .httpResponseHeaderSectionSize: .httpResponseHeaderSectionSize
        case .httpResponseBodySize: .httpResponseBodySize
        case .httpResponseTimeout: .httpResponseTimeout
        case .httpProtocolError: .httpProtocolError
        case .proxyInternalError: .proxyInternalError
        case .proxyConfigurationError: .proxyConfigurationError
        case .proxyLoopDetected: .proxyLoopDetected
        case .httpRequestDenied: .httpRequestDenied
        case .requestBodyFailed, .requestHeadTooLarge: .httpRequestError
        }
    }
}
