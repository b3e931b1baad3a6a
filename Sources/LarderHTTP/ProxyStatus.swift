/// What a proxy says of its dealings with the next hop: the member that Larder adds to `Proxy-Status`
/// (RFC 9209).
package struct ProxyStatus: Sendable, Equatable {
    /// Nil: there is none (§2.3).
    package var error: ProxyErrorType?
    /// The host or address that was asked (§2.1.2).
    package var nextHop: String?
    /// The status that came from there (§2.1.4).
    package var receivedStatus: StatusCode?
    /// The status with which the proxy reports a client's mistake (`http_request_error`, §2.3.27).
    package var generatedStatus: StatusCode?
    /// For people (§2.1.5): no secrets.
    package var details: String?

    package init(
        error: ProxyErrorType? = nil, nextHop: String? = nil, receivedStatus: StatusCode? = nil,
        generatedStatus: StatusCode? = nil, details: String? = nil
    ) {
        self.error = error
        self.nextHop = nextHop
        self.receivedStatus = receivedStatus
        self.generatedStatus = generatedStatus
        self.details = details
    }

    /// The list member as it stands in the field: `larder; error=dns_timeout; next-hop="a.example"`.
    ///
    /// - Parameter name: the proxy's name; what is no token is written as a string.
    package func member(named name: String) -> String {
        var text = StructuredField.tokenOrString(name)
        if let error = self.error { text += "; error=\(error.rawValue)" }
        if let hop = self.nextHop { text += "; next-hop=\(StructuredField.string(hop))" }
        if let status = self.receivedStatus { text += "; received-status=\(status)" }
        if let status = self.generatedStatus { text += "; status-code=\(status)" }
        if let details = self.details { text += "; details=\(StructuredField.string(details))" }
        return text
    }
}
