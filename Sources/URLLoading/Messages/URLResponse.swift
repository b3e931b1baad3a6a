public import Foundation

/// What is known of a response, without its body.
///
/// Never changes; may be used from any thread.
open class URLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let location: URL?
    /// What it was made with; nil where a subclass finds it out.
    private let told: ResponseMetadata?

    /// A response of which the caller knows everything.
    ///
    /// - Parameters:
    ///   - mimeType: kept as it is.
    ///   - length: in bytes; -1 where it is not known.
    ///   - name: of the text encoding, as IANA registers it.
    public init(
        url: URL, mimeType: String?, expectedContentLength length: Int,
        textEncodingName name: String?
    ) {
        self.location = url
        self.told = ResponseMetadata(
            mimeType: mimeType, textEncodingName: name, expectedContentLength: Int64(length))
        super.init()
    }

    /// A response of which nothing is known: for programs that put classes of their own in its place.
    public convenience override init() {
        self.init(location: nil)
    }

    /// A response of which nothing else is known, or whose subclass finds it out when it is asked.
    ///
    /// - Parameter told: what is known; nil: none of it.
    init(location: URL?, told: ResponseMetadata? = nil) {
        self.location = location
        self.told = told
        super.init()
    }

    /// Reads one from a keyed archive; nil where it holds none.
    public required init?(coder: NSCoder) {
        // The URL of one that has none is there, too: as nil.
        guard coder.allowsKeyedCoding, coder.containsValue(forKey: Key.url) else { return nil }
        let url = coder.decodeObject(of: NSURL.self, forKey: Key.url)
        func text(_ key: String) -> String? {
            guard coder.containsValue(forKey: key) else { return nil }
            return coder.decodeObject(of: NSString.self, forKey: key).map { $0 as String }
        }
        self.location = url.map { $0 as URL }
        self.told = ResponseMetadata(
            mimeType: text(Key.mimeType), textEncodingName: text(Key.textEncodingName),
            expectedContentLength: coder.decodeInt64(forKey: Key.expectedContentLength),
            suggestedFilename: text(Key.suggestedFilename).flatMap(SuggestedFilename.last))
        super.init()
    }

    /// Writes it to a keyed archive.
    open func encode(with coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return }
        coder.encode(self.url.map { $0 as NSURL }, forKey: Key.url)
        coder.encode(self.mimeType.map { $0 as NSString }, forKey: Key.mimeType)
        coder.encode(self.expectedContentLength, forKey: Key.expectedContentLength)
        coder.encode(self.textEncodingName.map { $0 as NSString }, forKey: Key.textEncodingName)
        coder.encode(self.suggestedFilename.map { $0 as NSString }, forKey: Key.suggestedFilename)
    }

    private enum Key {
        static let url = "NS.url"
        static let mimeType = "NS.mimeType"
        static let expectedContentLength = "NS.expectedContentLength"
        static let textEncodingName = "NS.textEncodingName"
        static let suggestedFilename = "NS.suggestedFilename"
    }

    /// Always true.
    public static var supportsSecureCoding: Bool { true }

    open override func copy() -> Any { self.copy(with: nil) }

    open func copy(with zone: NSZone? = nil) -> Any { self }

    /// What is known of it.
    var metadata: ResponseMetadata { self.told ?? ResponseMetadata() }

    /// Whether `metadata` was given, not derived.
    final var isTold: Bool { self.told != nil }

    /// What was loaded: the last URL of a chain of redirections.
    open var url: URL? { self.location }

    /// The media type without its parameters, in lower case where HTTP gave it; nil: not said.
    open var mimeType: String? { self.metadata.mimeType }

    /// How long the body will be, in bytes; -1 where it is not known.
    open var expectedContentLength: Int64 { self.metadata.expectedContentLength }

    /// The IANA name of the body's character encoding; nil: not said.
    open var textEncodingName: String? { self.metadata.textEncodingName }

    /// A name for a file with the body in it: what the server proposes (`Content-Disposition`), else
    /// the last part of the URL's path, else `Unknown`.
    ///
    /// Never a path: no `/`, no control character, not `.` or `..`, and 255 bytes at most. The host does not
    /// stand in for it, and no extension is added for the media type, as Apple's may be.
    open var suggestedFilename: String? {
        self.metadata.suggestedFilename
            ?? self.url.flatMap { SuggestedFilename.safe($0.lastPathComponent) }
            ?? SuggestedFilename.unknown
    }

    /// Equal where URL, length, media type and encoding are, and the status of HTTP.
    open override func isEqual(_ value: Any?) -> Bool {
        guard let other = value as? URLResponse else { return false }
        return other === self
            || self.url == other.url && self.expectedContentLength == other.expectedContentLength
                && self.mimeType == other.mimeType
                && self.textEncodingName == other.textEncodingName
                && (self as? HTTPURLResponse)?.statusCode == (other as? HTTPURLResponse)?.statusCode
    }

    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(self.url)
        hasher.combine(self.expectedContentLength)
        hasher.combine(self.mimeType)
        hasher.combine(self.textEncodingName)
        return hasher.finalize()
    }
}

/// What a response says about its body.
struct ResponseMetadata: Sendable {
    var mimeType: String?
    var textEncodingName: String?
    /// In bytes; -1: not known.
    var expectedContentLength: Int64 = -1
    /// nil: by the URL.
    var suggestedFilename: String?
}
