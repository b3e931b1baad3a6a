import Foundation
import LarderHTTP
import LarderPolicy
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
    ///
    /// - Parameter request: with the fields that a session adds.
    static func head(
        _ cached: CachedURLResponse, to request: Request, at now: Timestamp
    ) -> StoredHead {
        var response = ResponseHead(status: .ok)
        if let http = cached.response as? HTTPURLResponse {
            response.status = StatusCode(UInt16(clamping: http.statusCode))
            for (name, value) in CacheNote.pairs(of: http) { response.fields.append(name, value) }
        } else if let type = cached.response.mimeType {
            response.fields.append("Content-Type", type)
        }
        let head = StoredHead(
            status: response.status, fields: response.fields,
            varyingFields: Variance.fields(selectedBy: response, from: request),
            requestTime: now, responseTime: now)
        return self.noting(cached, in: head)
    }

    /// The head to store for a response that takes the place of one that was loaded: with the times and
    /// the fields of the request of that one.
    static func head(_ cached: CachedURLResponse, like loaded: StoredHead) -> StoredHead {
        var head = loaded
        if let http = cached.response as? HTTPURLResponse {
            var fields = Fields()
            for (name, value) in CacheNote.pairs(of: http) { fields.append(name, value) }
            head.fields = fields
            head.status = StatusCode(UInt16(clamping: http.statusCode))
        }
        return self.noting(cached, in: head)
    }

    /// The head of a response that a program has for a request of the engine's.
    ///
    /// It came when its `Date` says, or now.
    static func head(
        _ cached: CachedURLResponse, of request: Request, at now: Timestamp
    ) -> StoredHead {
        var response = ResponseHead(status: .ok)
        if let http = cached.response as? HTTPURLResponse {
            response.status = StatusCode(UInt16(clamping: http.statusCode))
            for (name, value) in CacheNote.pairs(of: http) { response.fields.append(name, value) }
        }
        let date = response.fields.first(FieldName(.date)).flatMap { HTTPDate.parse($0, now: now) }
        let received = min(date ?? now, now)
        let head = StoredHead(
            status: response.status, fields: response.fields,
            varyingFields: Variance.fields(selectedBy: response, from: request),
            requestTime: received, responseTime: received)
        return self.noting(cached, in: head)
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

    /// The response, and what the program wanted kept with it; nil where what is stored is none.
    static func read(
        _ head: StoredHead, at url: URL
    ) -> (response: URLResponse, userInfo: [AnyHashable: Any]?)? {
        guard let attachment = head.attachment else {
            return self.response(head, at: url).map { ($0, nil) }
        }
        let live = attachment.resident as? Live
        if let live, live.fields == head.fields { return (live.response, live.userInfo) }
        guard let note = CacheNote(Data(attachment.bytes)) else {
            return self.response(head, at: url).map { ($0, live?.userInfo) }
        }
        let response =
            note.response(
                status: Int(head.status.rawValue), fields: note.isHTTP ? head.fields : nil)
            ?? self.response(head, at: url)
        return response.map { ($0, live?.userInfo ?? note.userInfo) }
    }

    /// The response of a head that a session has stored by itself.
    static func response(_ head: StoredHead, at url: URL) -> HTTPURLResponse? {
        // What is stored has been decoded: its length is not the one that is written there.
        HTTPURLResponse(
            url: url, statusCode: Int(head.status.rawValue),
            headerFields: CacheNote.dictionary(head.fields.pairs),
            expectedLength: head.fields.contains(FieldName(.contentEncoding)) ? -1 : nil)
    }
}
