import Foundation
import LarderHTTP

/// What a later download needs to go on where one was broken off: the blob that programs keep.
///
/// It names the partial file and does not contain it. What a program's request said in secret
/// (credentials, cookies, a password in the URL) is not in it; the request that goes on is given
/// those of its own session.
struct ResumeData: Sendable, Equatable {
    struct Field: Sendable, Equatable {
        var name: String
        var value: String
    }

    /// Which representation the bytes are of (RFC 9110 §8.8): one of them at least.
    struct Validators: Sendable, Equatable {
        /// Strong, as it stood in the field.
        var entityTag: String?
        /// As it stood in the field.
        var lastModified: String?
    }

    var url: URL
    var fields: [Field] = []
    var validators: Validators
    /// The length of the whole, in bytes; -1 where it was not said.
    var total: Int64 = -1
    var part: DownloadPart
    var settings = ResumedSettings()

    /// The fields that are not kept: they hold secrets, or are made anew.
    private static let dropped: Set<String> = [
        "authorization", "cookie", "cookie2", "proxy-authorization", "range", "if-range",
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "accept-encoding",
        "content-length", "host",
    ]

    /// - Returns: nil where the download cannot be resumed (§3.5).
    init?(
        _ request: URLRequest, head: ResponseHead?, part: DownloadPart, total: Int64, now: Timestamp
    ) {
        guard let head, part.length > 0, let url = request.url?.withoutUserInformation,
            case .success(let validators) = Resumability.judge(request, head, now: now)
        else { return nil }
        self.url = url
        self.validators = validators
        self.part = part
        // A server that sent more than it said is not one to be asked for the rest.
        guard total < 0 || total >= part.length else { return nil }
        self.total = max(total, -1)
        self.fields = (request.allHTTPHeaderFields ?? [:])
            .filter { !Self.dropped.contains($0.key.lowercased()) }
            .map { Field(name: $0.key, value: $0.value) }
            .sorted { $0.name < $1.name }
        self.settings = ResumedSettings(request)
    }

    init(
        url: URL, fields: [Field] = [], validators: Validators, total: Int64 = -1,
        part: DownloadPart, settings: ResumedSettings = ResumedSettings()
    ) {
        self.url = url
        self.fields = fields
        self.validators = validators
        self.total = total
        self.part = part
        self.settings = settings
    }

    // MARK: The requests

    /// The request of the task that goes on, as a program sees it.
    var request: URLRequest {
        var request = URLRequest(url: self.url)
        for field in self.fields { Self.set(field.name, field.value, in: &request) }
        self.settings.set(in: &request)
        return request
    }

    /// A request for the rest: under the condition that it is a rest of the same (RFC 9110 §13.1.5),
    /// and without a content coding, in which the bytes would be others.
    func asking(_ request: URLRequest) -> URLRequest {
        var request = request
        Self.set("Range", "bytes=\(self.part.length)-", in: &request)
        Self.set(
            "If-Range", self.validators.entityTag ?? self.validators.lastModified, in: &request)
        Self.set("Accept-Encoding", "identity", in: &request)
        return request
    }

    private static func set(_ name: String, _ value: String?, in request: inout URLRequest) {
        var fields = request.allHTTPHeaderFields ?? [:]
        for key in fields.keys where key.lowercased() == name.lowercased() { fields[key] = nil }
        fields[name] = value
        request.allHTTPHeaderFields = fields
    }
}
