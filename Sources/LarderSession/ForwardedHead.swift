package import LarderHTTP

/// The head of an origin's response as it is sent on.
package enum ForwardedHead {
    /// Removes what is between Larder and the origin only, and adds `Date` where the origin sent
    /// none (RFC 9110 §6.6.1, §7.6.1).
    ///
    /// `Content-Length` goes too: framing is the door's business; and `Warning`, which is obsolete
    /// (RFC 9111 §5.5).
    static func make(
        _ head: ResponseHead, receivedAt now: Timestamp, dates: DateLines
    ) -> ResponseHead {
        var forwarded = ResponseHead(
            status: head.status, reason: head.reason, version: head.version,
            fields: HopByHop.stripped(
                head.fields, spareBytes: Self.spareBytes, spareLines: Self.spareLines,
                without: Self.dropped, except: HopByHop.subject(of: head.status)))
        forwarded.hasSetCookies = head.hasSetCookies
        if !forwarded.fields.has(.date) {
            forwarded.fields.append(contentsOf: dates.line(at: now))
        }
        return forwarded
    }

    private static let dropped: KnownFieldSet = [.contentLength, .warning]

    /// Room for what is added on the way to the client: `Date`, `Cache-Status`, `Proxy-Status`.
    private static let spareBytes = 192
    private static let spareLines = 3

    /// The length to announce: where no content follows (HEAD, 304), the origin's own words.
    package static func announcedLength(
        _ head: ResponseHead, _ bodyLength: BodyLength
    ) -> BodyLength {
        guard bodyLength == .none, head.status != .noContent,
            let length = try? MessageFraming.contentLength(of: head.fields)
        else { return bodyLength }
        return .known(length)
    }
}
