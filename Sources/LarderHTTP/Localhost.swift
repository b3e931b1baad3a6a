extension StringProtocol {
    /// Whether a host is `localhost`, or lies below it: a name of the machine that asks, for which no
    /// name server is asked (RFC 6761 §6.3).
    ///
    /// Letter case and a final dot do not count.
    package var isLocalhost: Bool {
        let name = (self.hasSuffix(".") ? self.dropLast() : self[...]).lowercased()
        return name == "localhost" || name.hasSuffix(".localhost")
    }
}
