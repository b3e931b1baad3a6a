public import Foundation
import LarderHTTP

/// A response together with its body, as a cache holds it.
///
/// Immutable. Copying gives the same object.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    // Invariant behind `@unchecked Sendable`: everything is constant but the body, which has a lock.
    let body: CachedBody
    /// The lines that its `Vary` names, of the request as it was sent, secrets sealed.
    ///
    /// No request of a program shows what a session and its cookies add. nil: a program made the response.
    let varyingFields: Fields?

    /// The response, without its body.
    open private(set) var response: URLResponse
    /// What the program wants kept with it.
    ///
    /// Keys and values that a property list can hold outlive the process, where the response does;
    /// others are kept as long as the response is in memory.
    open private(set) var userInfo: [AnyHashable: Any]?
    /// Where the response may be kept.
    open private(set) var storagePolicy: URLCache.StoragePolicy
    /// The body.
    ///
    /// That of a response that a session proposes to store (`willCacheResponse`) is read back when
    /// it is first asked for, which waits for the disk where the body is too large for memory, or
    /// when the storing is decided, where the program has kept the response.
    open var data: Data { self.body.data }

    /// A response that may be kept anywhere.
    public init(response: URLResponse, data: Data) {
        self.response = response.copy() as? URLResponse ?? response
        self.body = CachedBody(data)
        self.varyingFields = nil
        self.userInfo = nil
        self.storagePolicy = .allowed
        super.init()
    }

    /// A response with what the program wants kept with it.
    public init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil,
        storagePolicy: URLCache.StoragePolicy
    ) {
        self.response = response.copy() as? URLResponse ?? response
        self.body = CachedBody(data)
        self.varyingFields = nil
        self.userInfo = userInfo
        self.storagePolicy = storagePolicy
        super.init()
    }

    /// A response that was loaded.
    init(
        response: URLResponse, body: CachedBody, userInfo: [AnyHashable: Any]? = nil,
        storagePolicy: URLCache.StoragePolicy = .allowed, varyingFields: Fields
    ) {
        self.response = response
        self.body = body
        self.varyingFields = varyingFields
        self.userInfo = userInfo
        self.storagePolicy = storagePolicy
        super.init()
    }

    /// What a program has made of a response that was loaded.
    ///
    /// The object itself where it knows what it was loaded for, and where its class is a program's own.
    func loaded(for varyingFields: Fields) -> CachedURLResponse {
        guard self.varyingFields == nil, type(of: self) == CachedURLResponse.self else {
            return self
        }
        return CachedURLResponse(
            response: self.response, body: self.body, userInfo: self.userInfo,
            storagePolicy: self.storagePolicy, varyingFields: varyingFields)
    }

    // MARK: Coding

    /// Always true.
    public static var supportsSecureCoding: Bool { true }

    /// Writes the response, its body and what of `userInfo` a property list can hold; nothing to a coder
    /// without keys.
    open func encode(with coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return }
        let note = CacheNote(self)
        coder.encode(note.encoded(withFields: true) as NSData, forKey: "response")
        coder.encode(self.data as NSData, forKey: "data")
    }

    /// nil where the coder does not hold what `encode(with:)` writes.
    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding,
            // Foundation traps where a key is missing.
            coder.containsValue(forKey: "response"), coder.containsValue(forKey: "data"),
            let bytes = coder.decodeObject(of: NSData.self, forKey: "response"),
            let data = coder.decodeObject(of: NSData.self, forKey: "data"),
            let note = CacheNote(Data(referencing: bytes)), let response = note.response()
        else { return nil }
        self.response = response
        self.body = CachedBody(Data(referencing: data))
        self.varyingFields = note.varyingFields
        self.userInfo = note.userInfo
        self.storagePolicy = note.storagePolicy
        super.init()
    }

    open override func copy() -> Any { self.copy(with: nil) }

    /// This object itself: it never changes.
    open func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Equality

    /// Whether response, body and storage policy are equal; what `userInfo` holds may not be comparable.
    open override func isEqual(_ value: Any?) -> Bool {
        guard let other = value as? CachedURLResponse else { return false }
        if self === other { return true }
        return self.storagePolicy == other.storagePolicy && self.response.isEqual(other.response)
            && self.data == other.data
    }

    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(self.response.hash)
        hasher.combine(self.data)
        hasher.combine(self.storagePolicy)
        return hasher.finalize()
    }
}
