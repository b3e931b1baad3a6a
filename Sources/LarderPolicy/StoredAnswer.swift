package import LarderHTTP

/// The head with which a stored response goes to a client (RFC 9111 §4, §5.1).
package enum StoredAnswer {
    /// The head to send.
    ///
    /// `Age` is as it is now and `Date` as the origin gave it; a part has its `Content-Range`, and
    /// `Content-Length` is left to the framing. An answer of several parts lacks its `Content-Type`,
    /// which names the boundary.
    ///
    /// - Parameters:
    ///   - method: of the request. Of what a GET stored a HEAD is told all but what was computed of
    ///     content that it does not get.
    ///   - bodyLength: the length of the whole stored content.
    ///   - now: the `Date` of an answer that Larder makes itself (412, 416).
    ///   - isValidated: the origin has just confirmed the response. Only then may the fields go along
    ///     that `no-cache="…"` names (RFC 9111 §5.2.2.4).
    package static func head(
        for stored: StoredHead, to method: Method = .get, outcome: ClientOutcome,
        bodyLength: UInt64, age: Duration, now: Timestamp, isValidated: Bool = false,
        configuration: PolicyConfiguration = PolicyConfiguration()
    ) -> ResponseHead {
        switch outcome {
        case .full:
            var fields = self.fields(of: stored, age, isValidated, configuration)
            // RFC 9530 appendix B.2.
            if method == .head { PartialContent.removeOwnDigests(from: &fields) }
            return ResponseHead(status: stored.status, reason: stored.reason, fields: fields)
        case .partial(let range):
            var fields = self.fields(of: stored, age, isValidated, configuration) {
                $0 != .contentRange
            }
            PartialContent.removeOwnDigests(from: &fields)
            let length = stored.completeLength(bodyLength: bodyLength)
            fields.append("Content-Range", ContentRange.bytes(range, of: length).value)
            return ResponseHead(status: .partialContent, reason: "Partial Content", fields: fields)
        case .parts:
            // RFC 9110 §15.3.7.2: the content's own type stands in each part, its range too.
            var fields = self.fields(of: stored, age, isValidated, configuration) {
                $0 != .contentRange && $0 != .contentType
            }
            PartialContent.removeOwnDigests(from: &fields)
            return ResponseHead(status: .partialContent, reason: "Partial Content", fields: fields)
        case .notModified:
            let hasTag = EntityTag(of: stored.fields) != nil
            let fields = self.fields(of: stored, age, isValidated, configuration) {
                self.belongsTo304($0, hasTag: hasTag)
            }
            return ResponseHead(status: .notModified, reason: "Not Modified", fields: fields)
        case .preconditionFailed:
            return self.own(.preconditionFailed, "Precondition Failed", now)
        case .rangeNotSatisfiable:
            var head = self.own(.rangeNotSatisfiable, "Range Not Satisfiable", now)
            head.fields.append(
                "Content-Range", ContentRange.unsatisfied(length: bodyLength).value)
            return head
        }
    }

    private static func own(
        _ status: StatusCode, _ reason: String, _ now: Timestamp
    ) -> ResponseHead {
        ResponseHead(
            status: status, reason: reason, fields: ["Date": HTTPDate.format(now)])
    }

    /// RFC 9110 §15.4.5: a 304 bears no metadata of the content but that which guides caches;
    /// `Last-Modified` only where there is no entity tag.
    private static func belongsTo304(_ name: KnownField, hasTag: Bool) -> Bool {
        switch name {
        case .contentType, .contentEncoding, .contentLanguage, .contentRange: false
        case .lastModified: !hasTag
        default: true
        }
    }

    /// The stored fields that may be sent, and `Age` at the end.
    private static func fields(
        of stored: StoredHead, _ age: Duration, _ isValidated: Bool,
        _ configuration: PolicyConfiguration, where isIncluded: (KnownField) -> Bool = { _ in true }
    ) -> Fields {
        let directives = ResponseDirectives.of(stored, configuration: configuration)
        // Where one of them says what the content is, all had to be validated, or need not be.
        let withheld =
            isValidated
            ? [] : directives.control.noCacheFields.filter { !Storability.isGoverning($0.known) }
        // With room for what follows, also further on: growing copies the whole section.
        var fields = Fields(stored.fields, spareBytes: 192, spareLines: 4) { section, line in
            line.known != .age && line.known != .contentLength && isIncluded(line.known)
                && (withheld.isEmpty || !withheld.contains { section.matches(line, $0) })
        }
        if !fields.has(.date) { fields.append("Date", HTTPDate.format(stored.responseTime)) }
        fields.append("Age", String(max(0, age.inSeconds)))
        return fields
    }
}
