/// `Max-Forwards`: how far TRACE and OPTIONS may still go (RFC 9110 §7.6.2).
package enum MaxForwards {
    package enum Verdict: Hashable, Sendable {
        /// No limit is set, or the method is one whose limit is ignored.
        case unlimited
        /// The limit is used up: answer as the final recipient.
        case respond
        /// Forward, with this as the new value.
        case forward(remaining: UInt64)
    }

    /// Reads the field.
    ///
    /// One that is repeated or no number is ignored; one too large to count is
    /// taken for the largest that can be.
    package static func judge(method: Method, fields: Fields) -> Verdict {
        guard method == .trace || method == .options else { return .unlimited }
        let values = fields.values(FieldName(.maxForwards))
        guard values.count == 1, let digits = values.first, !digits.isEmpty else {
            return .unlimited
        }
        var value: UInt64 = 0
        for byte in digits {
            guard ASCII.isDigit(byte) else { return .unlimited }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(byte &- 0x30))
            value = overflow || carry ? .max : sum
        }
        return value == 0 ? .respond : .forward(remaining: value - 1)
    }
}

/// `Expect` (RFC 9110 §10.1.1).
package enum Expect: Hashable, Sendable {
    case none
    /// The client waits for `100 Continue` before it sends its content.
    case `continue`
    /// Something that nobody here can meet: 417.
    case unknown

    /// Reads the field; HTTP/1.0 has no expectations (§10.1.1: "MUST ignore").
    package init(_ fields: Fields, version: HTTPVersion) {
        guard version >= .http11, fields.contains(FieldName(.expect)) else {
            self = .none
            return
        }
        let elements = fields.members(FieldName(.expect))
        if elements.isEmpty {
            self = .none
        } else if elements.allSatisfy({ $0.span.equalsIgnoringCase("100-continue") }) {
            self = .continue
        } else {
            self = .unknown
        }
    }
}

/// `Upgrade` (RFC 9110 §7.8).
package enum Upgrade {
    /// The protocols that the sender offers, best first, as it wrote them; none in HTTP/1.0, and none
    /// where `Connection` does not say `upgrade`.
    package static func protocols(in fields: Fields, version: HTTPVersion) -> [String] {
        guard version >= .http11, fields.contains(FieldName(.upgrade)),
            HopByHop.connectionOptions(fields).contains("upgrade")
        else { return [] }
        return fields.plainMembers(FieldName(.upgrade)).compactMap { element in
            // `protocol-name ["/" protocol-version]`, both tokens.
            let parts = element.split(
                separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            guard parts.count <= 2,
                parts.allSatisfy({ !$0.isEmpty && $0.allSatisfy(ASCII.isToken) })
            else { return nil }
            return String(decoding: element, as: UTF8.self)
        }
    }
}
