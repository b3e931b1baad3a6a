public import Foundation
import LarderHTTP
import Synchronization

/// The head of an HTTP response.
///
/// Never changes; may be used from any thread. The fields are translated when they are asked for the
/// first time: a program that reads the status alone does not pay for them.
open class HTTPURLResponse: URLResponse, @unchecked Sendable {
    private enum Origin {
        case received(ResponseHead)
        case made([String: String])
    }

    private let status: Int
    private let origin: Origin
    private let length: Int64
    private let translated = Mutex<ResponseFields?>(nil)

    /// A response made by a program.
    ///
    /// - Parameters:
    ///   - httpVersion: not used; Foundation does not give it back either.
    ///   - headerFields: names are capitalised, but for those that begin with `X-`.
    public init?(
        url: URL, statusCode: Int, httpVersion: String?, headerFields: [String: String]?
    ) {
        let fields = headerFields ?? [:]
        self.status = statusCode
        self.origin = .made(fields)
        self.length = ResponseFields.contentLength(
            RequestFields.value(of: "Content-Length", in: fields))
        super.init(location: url)
    }

    /// A response made of what was kept of one.
    ///
    /// - Parameter expectedLength: nil: as `Content-Length` says.
    init(
        url: URL?, statusCode: Int, headerFields fields: [String: String], expectedLength: Int64?
    ) {
        self.status = statusCode
        self.origin = .made(fields)
        self.length =
            expectedLength
            ?? ResponseFields.contentLength(RequestFields.value(of: "Content-Length", in: fields))
        super.init(location: url)
    }

    /// A response without URL, status (0) and fields: for programs that put classes of their own in
    /// its place.
    public convenience init() {
        self.init(url: nil, statusCode: 0, headerFields: [:], expectedLength: -1)
    }

    /// A response that was received.
    ///
    /// - Parameter bodyLength: of the body that is delivered, which stands for `Content-Length` where
    ///   the head has none, and for the expected length.
    init(url: URL?, head: ResponseHead, bodyLength: BodyLength) {
        switch bodyLength {
        case .known(let bytes):
            self.length = Int64(clamping: bytes)
        case .none:
            self.length = ResponseFields.contentLength(
                head.fields.string(FieldName(.contentLength)))
        case .unknown:
            self.length = -1
        }
        self.status = Int(head.status.rawValue)
        if case .known(let bytes) = bodyLength, !head.fields.contains(FieldName(.contentLength)) {
            var announced = head
            announced.fields.append("Content-Length", String(bytes))
            self.origin = .received(announced)
        } else {
            self.origin = .received(head)
        }
        super.init(location: url)
    }

    /// Reads one from a keyed archive; nil where it holds none.
    public required init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return nil }
        self.status = coder.decodeInteger(forKey: "NS.statusCode")
        // A key that is missing is not to be asked for: an unarchiver may trap on that.
        let fields =
            coder.containsValue(forKey: "NS.allHeaderFields")
            ? coder.decodeObject(
                of: [NSDictionary.self, NSString.self], forKey: "NS.allHeaderFields") : nil
        self.origin = .made(fields as? [String: String] ?? [:])
        self.length = coder.decodeInt64(forKey: "NS.expectedContentLength")
        super.init(coder: coder)
    }

    /// Writes it to a keyed archive.
    open override func encode(with coder: NSCoder) {
        super.encode(with: coder)
        guard coder.allowsKeyedCoding else { return }
        coder.encode(self.statusCode, forKey: "NS.statusCode")
        coder.encode(self.fields.byName as NSDictionary, forKey: "NS.allHeaderFields")
    }

    /// The head as it was received; nil where a program made the response.
    final var head: ResponseHead? {
        if case .received(let head) = self.origin { head } else { nil }
    }

    /// The fields, translated once.
    ///
    /// Two threads that ask at once may both translate: alike.
    private var fields: ResponseFields {
        if let fields = self.translated.withLock({ $0 }) { return fields }
        let fields =
            switch self.origin {
            case .received(let head): ResponseFields(head.fields)
            case .made(let fields): ResponseFields(fields)
            }
        self.translated.withLock { $0 = fields }
        return fields
    }

    override var metadata: ResponseMetadata {
        if self.isTold { return super.metadata }
        let fields = self.fields
        let type = fields.value(of: "Content-Type").map(ParameterizedValue.init)
        return ResponseMetadata(
            mimeType: type?.mediaType, textEncodingName: type?.first("charset")?.lowercased(),
            expectedContentLength: self.length,
            suggestedFilename: fields.value(of: "Content-Disposition")
                .flatMap(SuggestedFilename.proposed))
    }

    open override var expectedContentLength: Int64 { self.length }

    /// Three digits; what is not in RFC 9110 is given as it came.
    open var statusCode: Int { self.status }

    /// All header fields, repeated ones joined with `, ` (also `Set-Cookie`).
    ///
    /// Names are capitalised (`Etag`), but for those that begin with `X-` and `WWW-Authenticate`.
    /// The dictionary is an ordinary one: `value(forHTTPHeaderField:)` sets case aside.
    open var allHeaderFields: [AnyHashable: Any] { self.fields.byName }

    /// The value of a header field, case set aside.
    open func value(forHTTPHeaderField field: String) -> String? {
        if case .received(let head) = self.origin {
            return ResponseFields.value(of: FieldName(field), in: head.fields)
        }
        return self.fields.value(of: field)
    }

    /// What a status code means, in English.
    open class func localizedString(forStatusCode statusCode: Int) -> String {
        switch statusCode {
        // As Foundation words them.
        case 209..<226, 227..<300: "Success"
        case 413: "Payload Too Large"
        case 422: "Unprocessable Entity"
        case 510: "Not Extended"
        case 100..<600: StatusCode(UInt16(clamping: statusCode)).reasonPhrase
        default: "Server Error"
        }
    }

    /// URL, status and fields; of those that set cookies the values are hidden.
    open override var description: String {
        let fields = SecretFields.hidden(self.fields.byName).sorted { $0.key < $1.key }
        let lines = fields.map { "   \"\($0.key)\" = \"\($0.value)\";\n" }.joined()
        return
            "\(super.description) { URL: \(self.url?.withoutPassword.absoluteString ?? "(null)") }"
            + "{ status: \(self.statusCode), headers {\n\(lines)} }"
    }
}
