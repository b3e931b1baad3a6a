import Dispatch
import Foundation
import LarderHTTP

/// What a task sends as the content of its request.
///
/// Unchecked: a stream is touched by the one source that reads it, and by nobody before.
enum UploadBody: @unchecked Sendable {
    case none
    case data(Data)
    /// Read while it is sent, never held as a whole; from an offset on, in bytes.
    case file(URL, from: Int64 = 0)
    /// A stream of the request itself (`httpBodyStream`), or given by a delegate; can be read once.
    case stream(InputStream)
    /// The delegate is asked for a stream, at first and for each time that it is sent again.
    case streamed

    /// Whether it can be sent again without a question to the delegate.
    var isRepeatable: Bool {
        switch self {
        case .none, .data, .file: true
        case .stream, .streamed: false
        }
    }

    /// Begins to read it; nil where there is nothing to send.
    ///
    /// - Parameter announced: the length that the program's own `Content-Length` says; it counts for
    ///   streams alone.
    /// - Throws: a file cannot be read, or a stream is missing (`requestBodyStreamExhausted`).
    func open(announced: Int64? = nil) throws(URLError) -> UploadSource? {
        switch self {
        case .none:
            return nil
        case .data(let data):
            return UploadSource(source: DataUploadSource(data), length: Int64(data.count))
        case .file(let url, let offset):
            let file = try UploadFile(url, from: offset)
            let source = ReadingUploadSource(file, on: FileWork.queue, isReadAhead: true)
            return UploadSource(source: source, length: file.length - offset)
        case .stream(let stream):
            // A queue of its own: a stream that blocks keeps one thread of the pool, and no other
            // stream, nor any file, from going on.
            let queue = DispatchQueue(label: "URLLoading.stream")
            let source = ReadingUploadSource(UploadStream(stream), on: queue, isReadAhead: false)
            return UploadSource(source: source, length: announced)
        case .streamed:
            throw URLError(.requestBodyStreamExhausted)
        }
    }

    /// `countOfBytesExpectedToSend`: 0 without content, -1 where it is not known.
    func countOfBytesExpectedToSend(announced: Int64? = nil) -> Int64 {
        switch self {
        case .none: 0
        case .data(let data): Int64(data.count)
        case .file(let url, let offset): FileStatus(atPath: url.path).map { $0.size - offset } ?? -1
        case .stream, .streamed: announced ?? -1
        }
    }

    /// The `Content-Type` to send where the program gave none; nil: none.
    ///
    /// A file's is that of its extension, and `application/octet-stream` for one that says nothing;
    /// other content of a POST counts as a form.
    func contentType(method: String?) -> String? {
        switch self {
        case .none: nil
        case .file(let url, _): FileMediaType.of(url.pathExtension)
        case .data, .stream, .streamed:
            method == "POST" ? "application/x-www-form-urlencoded" : nil
        }
    }

    /// The length in a request's own `Content-Length`; nil where it has none, or no number.
    static func announcedLength(_ value: String?) -> Int64? {
        guard let value = value?.trimmingCharacters(in: .whitespaces), !value.isEmpty,
            value.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return Int64(value)
    }
}

/// A source of content that can say, in the program's words, why it failed.
protocol UploadFailing: AnyObject, Sendable {
    /// nil unless it has failed.
    var failure: URLError? { get }
}

extension UploadSource {
    /// Why the content could not be read; nil: that was not what went wrong.
    var failure: URLError? { (self.source as? any UploadFailing)?.failure }
}
