import LarderHTTP

extension Request {
    /// Whether its own `Authorization` logs in the connection that it goes over: NTLM, and Negotiate
    /// (RFC 4559 §6).
    ///
    /// An origin then takes whatever else comes over that connection for the same user's, so nobody
    /// else's request may.
    var logsConnectionIn: Bool {
        let fields = self.fields
        guard fields.contains(FieldName(.authorization)) else { return false }
        return fields.lines.contains { line in
            guard line.known == .authorization else { return false }
            let scheme = fields.value(of: line).prefix(while: ASCII.isToken)
            return scheme.spells("ntlm") || scheme.spells("negotiate")
        }
    }
}
