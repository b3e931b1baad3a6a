import Foundation
import LarderHTTP

/// Loads `data:` URLs (RFC 2397), which are their own response.
struct DataLoader: Loader {
    func load(_ order: LoadOrder, observer: any LoadObserver) -> any Load {
        order.body?.source.cancel()
        let measurement = MeasuredOnce(order.request, observer)
        guard let url = order.request.url, let contents = DataURL(url.absoluteString) else {
            observer.load(failed: URLError(.badURL))
            measurement.tell()
            return InstantLoad(body: nil)
        }
        let response = URLResponse(
            url: url, mimeType: contents.mediaType, expectedContentLength: contents.data.count,
            textEncodingName: contents.charset)
        let body = QueuedBody()
        if order.request.httpMethod != "HEAD" { body.append(contents.data) }
        body.finish()
        body.whenLeft { [weak body] in measurement.tell(bodyBytes: body?.given ?? 0) }
        measurement.note(response)
        observer.load(answered: LoadAnswer(response: response, body: body))
        return InstantLoad(body: body)
    }
}

/// A load that was over as soon as it began, but for its body.
private final class InstantLoad: Load {
    private let body: QueuedBody?

    init(body: QueuedBody?) {
        self.body = body
    }

    func cancel() { self.body?.cancel() }
}
