import Foundation
import LarderHTTP
import Synchronization

/// Loads `file:` URLs.
///
/// Opening and reading wait for disks, and are done on a queue for that, a piece at a time. Methods
/// other than GET and HEAD mean nothing for a file: `URLError.unsupportedURL`.
struct FileLoader: Loader {
    private static let queue = DispatchQueue(label: "URLLoading.files", attributes: .concurrent)

    func load(_ order: LoadOrder, observer: any LoadObserver) -> any Load {
        order.body?.source.cancel()
        let load = FileLoad(order.request, observer)
        Self.queue.async { load.open(on: Self.queue) }
        return load
    }
}

/// One file being opened, and then read.
private final class FileLoad: Load {
    private let request: URLRequest
    private let observer: any LoadObserver
    private let measurement: MeasuredOnce
    private let state = Mutex((isOver: false, body: FileBody?.none))

    init(_ request: URLRequest, _ observer: any LoadObserver) {
        self.request = request
        self.observer = observer
        self.measurement = MeasuredOnce(request, observer)
    }

    func open(on queue: DispatchQueue) {
        let answer: LoadAnswer
        do throws(URLError) {
            answer = try self.answer(on: queue)
        } catch {
            if self.state.withLock({ !$0.isOver }) { self.observer.load(failed: error) }
            return self.measurement.tell()
        }
        let isWanted = self.state.withLock { state in
            state.body = answer.body as? FileBody
            return !state.isOver
        }
        guard isWanted else { return answer.body.cancel() }
        self.measurement.note(answer.response)
        self.observer.load(answered: answer)
    }

    private func answer(on queue: DispatchQueue) throws(URLError) -> LoadAnswer {
        guard let url = self.request.url else { throw URLError(.badURL) }
        let hasContent = self.request.httpMethod != "HEAD"
        guard !hasContent || self.request.httpMethod == "GET" else {
            throw URLError(.unsupportedURL)
        }
        if let host = url.host, !host.isEmpty, host.lowercased() != "localhost" {
            throw URLError(.fileDoesNotExist)
        }
        let file = try ReadableFile(path: url.path)
        let response = URLResponse(
            url: url, mimeType: FileMediaType.of(url.pathExtension),
            expectedContentLength: Int(clamping: file.size), textEncodingName: nil)
        let body = FileBody(file, length: hasContent ? file.size : 0, on: queue) {
            self.measurement.tell(bodyBytes: $0)
        }
        return LoadAnswer(response: response, body: body)
    }

    func cancel() {
        let body = self.state.withLock { state in
            state.isOver = true
            return state.body
        }
        body?.cancel()
    }
}
