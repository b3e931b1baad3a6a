package import LarderHTTP

extension Validation {
    /// A request of the cache's own with the client's single range put back: whatever the origin
    /// answers instead of 304 is then no more than what the client asked for (RFC 9110 §13.2.2).
    ///
    /// Its `If-Range` goes along: without it a range could come that the client cannot use.
    package static func keepingRange(_ own: Request, of client: Request) -> Request {
        guard client.method == .get, let set = RangeSet(of: client.fields), set.ranges.count == 1
        else { return own }
        var request = own
        for name in [KnownField.range, .ifRange] {
            request.fields.remove(FieldName(name))
            for line in client.fields.lines where line.known == name {
                request.fields.append(line, of: client.fields)
            }
        }
        return request
    }
}
