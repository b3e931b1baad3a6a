import Foundation
import Synchronization

@testable import LarderProcess
@testable import URLLoading

/// Hears everything of a download, and of the data task that became one.
final class DownloadRecorder: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate {
    struct Heard: Sendable {
        var messages: [String] = []
        /// What each call said: written, in all, expected.
        var written: [(Int64, Int64, Int64)] = []
        var offset: (Int64, Int64)?
        var content: Data?
        var location: URL?
        var completions: [(any Error)?] = []

        var error: URLError? { self.completions.last.flatMap { $0 as? URLError } }
    }

    let heard = Event(Heard())
    private let disposition: URLSession.ResponseDisposition
    private let stream: (@Sendable () -> InputStream?)?

    init(
        answering disposition: URLSession.ResponseDisposition = .allow,
        stream: (@Sendable () -> InputStream?)? = nil
    ) {
        self.disposition = disposition
        self.stream = stream
    }

    /// Waits for the end of as many tasks.
    @discardableResult
    func completion(_ count: Int = 1) async throws -> Heard {
        try await self.heard.wait(for: "the completion") { $0.completions.count >= count }
        return self.heard.value
    }

    /// Each kind of message once, in the order of the first.
    var order: [String] {
        self.heard.value.messages.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private func note(_ message: String, _ change: (inout Heard) -> Void = { _ in }) {
        self.heard.change { heard in
            heard.messages.append(message)
            change(&heard)
        }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        self.note("written") {
            $0.written.append((bytesWritten, totalBytesWritten, totalBytesExpectedToWrite))
        }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didResumeAtOffset fileOffset: Int64, expectedTotalBytes: Int64
    ) {
        self.note("resumed") { $0.offset = (fileOffset, expectedTotalBytes) }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        let content = try? Data(contentsOf: location)
        self.note("finished") {
            $0.content = content
            $0.location = location
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        self.note("response")
        completionHandler(self.disposition)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        didBecome downloadTask: URLSessionDownloadTask
    ) {
        self.note("became")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.note("data")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting m: URLSessionTaskMetrics
    ) {
        self.note("metrics")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {
        self.note("sent") {
            $0.written.append((bytesSent, totalBytesSent, totalBytesExpectedToSend))
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        self.note("stream")
        completionHandler(self.stream?())
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.note("complete") { $0.completions.append(error) }
    }
}

/// An origin with one file, that serves ranges of it and stops in its midst when told to.
struct FileOrigin: Sendable {
    let origin: ScriptedOrigin
    let content: [UInt8]
    /// The validators of the file, and what else its responses have.
    let fields: Event<[String]>
    /// So many bytes of a body are sent, then nothing until `goOn`; nil: all.
    let stopsAt: Event<Int?>
    let goOn: Event<Bool>

    static func start(
        count: Int, fields: [String] = ["ETag: \"v1\"", "Accept-Ranges: bytes"],
        stopsAt: Int? = nil, cuts: Bool = false
    ) async throws -> FileOrigin {
        let content = pattern(count)
        let (fields, stop, goOn) = (Event(fields), Event(stopsAt), Event(false))
        let origin = try await ScriptedOrigin.start { connection in
            while let request = try await connection.request() {
                let (head, body) = Self.answer(request, content, fields.value)
                try await connection.send(head)
                guard let count = stop.value, count < body.count else {
                    try await connection.wire.send(Array(body))
                    continue
                }
                try await connection.wire.send(Array(body.prefix(count)))
                if cuts { return }
                try await goOn.wait(for: "leave to go on") { $0 }
                try await connection.wire.send(Array(body.dropFirst(count)))
            }
        }
        return FileOrigin(
            origin: origin, content: content, fields: fields, stopsAt: stop, goOn: goOn)
    }

    private static func answer(
        _ request: Message, _ content: [UInt8], _ fields: [String]
    ) -> (String, ArraySlice<UInt8>) {
        var lines = fields
        var status = "200 OK"
        var body = content[...]
        let etag = fields.first { $0.hasPrefix("ETag: ") }?.dropFirst(6)
        let range = request["Range"]?.dropFirst("bytes=".count).dropLast()
        if let start = range.flatMap({ Int($0) }), request["If-Range"] == etag.map(String.init) {
            status = "206 Partial Content"
            body = content[start...]
            lines.append("Content-Range: bytes \(start)-\(content.count - 1)/\(content.count)")
        }
        lines.append("Content-Length: \(body.count)")
        return ("HTTP/1.1 \(status)\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n", body)
    }

    var url: URL { get throws { try URL.of(self.origin.url("/file.bin")) } }
}

extension URL {
    static func of(_ text: String) throws -> URL {
        guard let url = URL(string: text) else { throw URLError(.badURL) }
        return url
    }
}

extension URLSession {
    static func plain(_ delegate: (any URLSessionDelegate)? = nil) -> URLSession {
        URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    }

    /// Waits until what stood on the delegate queue has been done.
    func queueEmptied() async {
        await withCheckedContinuation { continuation in
            self.delegateQueue.addBarrierBlock { continuation.resume() }
        }
    }
}
