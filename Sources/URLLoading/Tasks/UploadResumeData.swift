import Foundation

/// What a later upload needs to go on where one was broken off: the blob that programs keep.
///
/// A file is named and not contained, data is contained. What the request said in secret (credentials,
/// cookies, a password in the URL) is not in it; the requests that go on are given those of their own
/// session.
struct UploadResumeData: Sendable {
    /// What is left to send is a rest of this.
    enum Content: Sendable, Equatable {
        case data(Data)
        /// - Parameters:
        ///   - size: in bytes.
        ///   - modified: in nanoseconds since 1970.
        case file(path: String, size: Int64, modified: Int64)
        /// The delegate gives it.
        case streamed
    }

    /// The target of the first request, as the fields that follow are.
    var target: URL
    var method: String
    var fields: [ResumeData.Field]
    /// Where the server keeps the upload.
    var resource: URL
    var content: Content
    var settings: ResumedSettings

    /// The fields that are not kept: they hold secrets, are made anew, or speak of the content as a
    /// whole.
    private static let dropped: Set<String> = [
        "authorization", "cookie", "cookie2", "proxy-authorization", "content-length", "host",
        "content-encoding", "content-range", "transfer-encoding", "expect", "if-match",
        "if-none-match", "if-modified-since", "if-unmodified-since", "upload-complete",
        "upload-offset", "upload-draft-interop-version",
    ]

    /// - Returns: nil where the content cannot be read again.
    init?(_ request: URLRequest, sending content: UploadBody, kept resource: URL) {
        guard let target = request.url?.withoutUserInformation else { return nil }
        switch content {
        case .none, .stream: return nil
        case .data(let data): self.content = .data(data)
        case .file(let url, _):
            guard let status = FileStatus(atPath: url.path), status.isRegular else { return nil }
            self.content = .file(path: url.path, size: status.size, modified: status.modified)
        case .streamed: self.content = .streamed
        }
        self.target = target
        self.method = request.httpMethod ?? "POST"
        self.resource = resource
        self.settings = ResumedSettings(request)
        self.fields = (request.allHTTPHeaderFields ?? [:])
            .filter { !Self.dropped.contains($0.key.lowercased()) }
            .map { ResumeData.Field(name: $0.key, value: $0.value) }
            .sorted { $0.name < $1.name }
    }

    /// The request that was made first, as a program sees it.
    var request: URLRequest {
        var request = URLRequest(url: self.target)
        request.httpMethod = self.method
        request.allHTTPHeaderFields = Dictionary(
            self.fields.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        self.settings.set(in: &request)
        return request
    }

    /// What is to be sent from an offset on.
    ///
    /// - Throws: `requestBodyStreamExhausted` where there is no such rest, or a file is not the one
    ///   that it was.
    func rest(from offset: Int64) throws(URLError) -> UploadBody {
        switch self.content {
        case .streamed: return .streamed
        case .data(let data):
            guard offset <= Int64(data.count) else { throw URLError(.requestBodyStreamExhausted) }
            return .data(data.dropFirst(Int(offset)))
        case .file(let path, let size, let modified):
            let url = URL(fileURLWithPath: path)
            guard let status = FileStatus(atPath: path) else {
                throw FileWork.error(.fileDoesNotExist, url)
            }
            guard status.size == size, status.modified == modified, offset <= size else {
                throw FileWork.error(
                    .requestBodyStreamExhausted, url,
                    saying: "The file has changed since a part of it was sent.")
            }
            return .file(url, from: offset)
        }
    }

    /// How long the whole is, in bytes; -1: not known.
    var length: Int64 {
        switch self.content {
        case .data(let data): Int64(data.count)
        case .file(_, let size, _): size
        case .streamed: -1
        }
    }
}

// MARK: - The blob

// Nothing in it is believed: it may come from anywhere.

extension UploadResumeData {
    private static let form = SealedForm(mark: "URLLoading upload", version: 1)

    func encoded() -> Data {
        var writer = SealedForm.Writer(Self.form)
        writer.append(self.target.absoluteString)
        writer.append(self.method)
        writer.append(self.fields)
        writer.append(self.resource.absoluteString)
        switch self.content {
        case .data(let data):
            writer.append(0)
            writer.append(data)
        case .file(let path, let size, let modified):
            writer.append(1)
            writer.append(path)
            writer.append(UInt64(bitPattern: size))
            writer.append(UInt64(bitPattern: modified))
        case .streamed: writer.append(2)
        }
        writer.append(self.settings)
        return writer.sealed()
    }

    /// nil for anything but what `encoded` makes: foreign, damaged, cut off or forged data.
    init?(decoding data: Data) {
        guard var reader = Self.form.open(data),
            let target = reader.text().flatMap({ URL(string: $0) }), target.isUploadable,
            let method = reader.text(), let fields = reader.fields(),
            let resource = reader.text().flatMap({ URL(string: $0) }), resource.isUploadable,
            let content = Self.content(&reader), let settings = reader.settings(),
            reader.isAtEnd,
            ResumeData.Field(name: method, value: "").isSound, fields.allSatisfy(\.isSound)
        else { return nil }
        self.target = target
        self.method = method
        self.fields = fields
        self.resource = resource
        self.content = content
        self.settings = settings
    }

    private static func content(_ reader: inout SealedForm.Reader) -> Content? {
        switch reader.number() {
        case 0: return reader.data().map { .data($0) }
        case 1:
            guard let path = reader.text(), path.hasPrefix("/"), !path.utf8.contains(0),
                let size = reader.number(), let modified = reader.number()
            else { return nil }
            let length = Int64(bitPattern: size)
            guard length >= 0 else { return nil }
            return .file(path: path, size: length, modified: Int64(bitPattern: modified))
        case 2: return .streamed
        default: return nil
        }
    }
}

extension URL {
    /// Whether something can be uploaded there, and gone on with.
    var isUploadable: Bool {
        ["http", "https"].contains(self.scheme?.lowercased()) && self.host?.isEmpty == false
    }
}
