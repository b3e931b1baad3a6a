import Foundation
import LarderHTTP
import LarderPolicy
import LarderSession
import LarderStore

/// A program's response as the head that a store keeps, and back.
enum StoredResponse {
    /// What a session has loaded and was about to store.
    struct Loaded: Sendable {
        let head: StoredHead
        let key: CacheKey
        let replacing: [ObjectID]
        let removals: RemovalMark
    }

    /// What memory keeps beside the bytes: the response itself, and what no bytes can say.
    private final class Live: @unchecked Sendable {
        // Invariant: a response is immutable, and what a program puts into `userInfo` it must be able to
        // share, as it gets it back on any thread.
        let response: URLResponse
        let userInfo: [AnyHashable: Any]?
        /// The fields of the head that was made of it: where they are others, a validation has
        /// changed them.
        let fields: Fields

        init(_ cached: CachedURLResponse, _ fields: Fields) {
            self.response = cached.response
            self.userInfo = cached.userInfo
            self.fields = fields
        }
    }

    // MARK: Into the store

    /// The head to store for a response that came just now, as far as anybody knows.
    static func head(
        _ cached: CachedURLResponse, to address: CacheAddress, at now: Timestamp
    ) -> StoredHead {
        let response = self.response(of: cached)
        let head = StoredHead(
            status: response.status, fields: response.fields,
            varyingFields: self.varyingFields(of: cached, response, to: address),
            requestTime: now, responseTime: now)
        return self.noting(cached, in: head)
    }

    /// The lines that a response's `Vary` names, as it was loaded for them where that is known.
    ///
    /// What the program's request names itself counts before, where it stores the response for another
    /// one; not its secrets, in whose place a session may have sent others.
    private static func varyingFields(
        of cached: CachedURLResponse, _ response: ResponseHead, to address: CacheAddress
    ) -> Fields {
        guard var loaded = cached.varyingFields else {
            return Variance.fields(selectedBy: response, from: address.sent)
        }
        var own = Variance.fields(selectedBy: response, from: address.request)
        own.keep { !FieldSealer.isSecret($1.known) }
        loaded.keep { fields, line in !own.names(line, of: fields) }
        loaded.append(contentsOf: own)
        return loaded
    }

    /// The head to store for a response that takes the place of one that was loaded: with the times and
    /// the fields of the request of that one.
    static func head(_ cached: CachedURLResponse, like loaded: StoredHead) -> StoredHead {
        var head = loaded
        if cached.response is HTTPURLResponse {
            let response = self.response(of: cached)
            head.fields = response.fields
            head.status = response.status
        }
        return self.noting(cached, in: head)
    }

    /// The head of a response that a program has for a request of the engine's; nil where nobody knows
    /// for whose secrets it is.
    ///
    /// It came when its `Date` says, or now.
    static func head(
        _ cached: CachedURLResponse, of request: Request, at now: Timestamp
    ) -> StoredHead? {
        let response = self.response(of: cached)
        let date = response.fields.first(FieldName(.date)).flatMap { HTTPDate.parse($0, now: now) }
        let received = min(date ?? now, now)
        let head = StoredHead(
            status: response.status, fields: response.fields,
            varyingFields: cached.varyingFields
                ?? Variance.fields(selectedBy: response, from: request),
            requestTime: received, responseTime: received)
        let isUnknown =
            cached.varyingFields == nil
            && Variance.depends(head, onAny: { FieldSealer.isSecret($0.known) })
        return isUnknown ? nil : self.noting(cached, in: head)
    }

    /// Status and fields; what is no response of HTTP has its media type alone.
    private static func response(of cached: CachedURLResponse) -> ResponseHead {
        var response = ResponseHead(status: .ok)
        if let http = cached.response as? HTTPURLResponse {
            response.status = StatusCode(UInt16(clamping: http.statusCode))
            response.fields = CacheNote.fields(of: http)
        } else if let type = cached.response.mimeType {
            response.fields.append("Content-Type", type)
        }
        return response
    }

    private static func noting(_ cached: CachedURLResponse, in head: StoredHead) -> StoredHead {
        var head = head
        head.staysInMemory = cached.storagePolicy == .allowedInMemoryOnly
        head.attachment = StoredAttachment(
            bytes: Array(CacheNote(cached).encoded(withFields: false)),
            resident: Live(cached, head.fields))
        return head
    }

    // MARK: Out of the store

    /// The response, and what the program wanted kept with it.
    static func read(
        _ head: StoredHead, at url: URL
    ) -> (response: URLResponse, userInfo: [AnyHashable: Any]?) {
        guard let attachment = head.attachment else {
            return (self.response(head, at: url), nil)
        }
        let live = attachment.resident as? Live
        if let live, live.fields == head.fields { return (live.response, live.userInfo) }
        guard let note = CacheNote(Data(attachment.bytes)) else {
            return (self.response(head, at: url), live?.userInfo)
        }
        let response =
            note.response(ResponseHead(status: head.status, fields: head.fields))
            ?? self.response(head, at: url)
        return (response, live?.userInfo ?? note.userInfo)
    }

    /// The response of a head that a session has stored by itself.
    static func response(_ head: StoredHead, at url: URL) -> HTTPURLResponse {
        // What was decoded when it was stored has not the length that is written there.
        HTTPURLResponse(
            url: url, head: ResponseHead(status: head.status, fields: head.fields),
            bodyLength: head.fields.nameUndoneCodings ? .unknown : .none)
    }
}
