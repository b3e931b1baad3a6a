import Foundation
import LarderHTTP
import Synchronization

// What a task sends: got ready for each of its loads anew.

extension URLSessionTask {
    /// Gets together what the next load needs.
    func prepare() {
        guard let request = self.currentRequest, let url = request.url,
            url.isPlainlyWeb || url.scheme != nil
        else {
            return self.fail(.unsupportedURL)
        }
        let (content, isSpent) = self.guarded.withLock { ($0.content, $0.isContentSpent) }
        switch content {
        case .none: self.launch(body: nil)
        case .data, .file: self.open(content, of: request)
        case .stream where !isSpent:
            self.guarded.withLock { $0.isContentSpent = true }
            self.open(content, of: request)
        case .stream, .streamed: self.askForStream(of: request)
        }
    }

    private func askForStream(of request: URLRequest) {
        guard let question = self.guarded.withLock({ $0.machine.ask() }) else { return }
        let decide: @Sendable (InputStream?) -> Void = { [self] stream in
            guard self.guarded.withLock({ $0.machine.answer(question) }) else { return }
            guard let stream else { return self.fail(.requestBodyStreamExhausted) }
            self.open(.stream(stream), of: request)
        }
        let offset = self.purpose.sentBefore
        let method = offset == 0 ? DelegateCall.Method.bodyStream : .bodyStreamFrom
        self.tell(method, orElse: { decide(nil) }) { task, session, delegates in
            guard let delegate = delegates.task else { return decide(nil) }
            guard offset == 0 else {
                return delegate.urlSession(
                    session, task: task, needNewBodyStreamFrom: offset, completionHandler: decide)
            }
            delegate.urlSession(session, task: task, needNewBodyStream: decide)
        }
    }

    private func open(_ content: UploadBody, of request: URLRequest) {
        // Nobody knows what the content of a GET means (RFC 9110 §9.3.1), but perhaps the program's own
        // protocol. Nothing of the content is looked at: what is wrong is that there is some.
        guard request.httpMethod ?? "GET" != "GET" || self.isProgramsOwn(request) else {
            return self.fail(.dataLengthExceedsMaximum)
        }
        let announced = UploadBody.announcedLength(
            request.value(forHTTPHeaderField: "Content-Length"))
        do throws(URLError) {
            self.launch(body: try content.open(announced: announced))
        } catch {
            self.settle(.failed(error))
        }
    }

    private func isProgramsOwn(_ request: URLRequest) -> Bool {
        let whole = self.guarded.withLock { $0.completed(request) }
        return self.session?.loaders.isProgramsOwn(self.purpose.asking(whole), of: self) == true
    }
}

extension UploadBody {
    /// The content that a request brings itself; none where it is empty.
    init(of request: URLRequest?) {
        if let data = request?.httpBody {
            self = data.isEmpty ? .none : .data(data)
        } else if let stream = request?.httpBodyStream {
            self = .stream(stream)
        } else {
            self = .none
        }
    }

    var isSomething: Bool {
        if case .none = self { false } else { true }
    }
}

extension TaskState {
    /// Another request is to be made, by a redirection; the current one is still the one before.
    ///
    /// - Parameters:
    ///   - chosen: that one.
    ///   - proposed: what the delegate was asked about; what it changed in it counts.
    ///   - keepsContent: the content so far is what the proposed one sends.
    mutating func replaceContent(
        for chosen: URLRequest, insteadOf proposed: URLRequest, keeping keepsContent: Bool
    ) {
        let own = UploadBody(of: chosen)
        switch own {
        case .data: self.content = own
        // That of the proposed request is the one that was read, unless a program's protocol put it
        // there.
        case .stream(let stream)
        where stream !== proposed.httpBodyStream || stream !== self.currentRequest?.httpBodyStream:
            self.content = own
            self.isContentSpent = false
        case .none where UploadBody(of: proposed).isSomething: self.content = .none
        case .none, .file, .stream, .streamed:
            // What an upload task sends is in no request, so that a method says whether it fits.
            if keepsContent, chosen.httpMethod ?? "GET" != "GET" { return }
            self.content = .none
        }
        self.sent = 0
        let announced = UploadBody.announcedLength(
            chosen.value(forHTTPHeaderField: "Content-Length"))
        self.expectedToSend = self.content.countOfBytesExpectedToSend(announced: announced)
    }

    /// The request to which a program's protocol leads, as one of the task's own, and whether the
    /// content so far is what it sends (RFC 9110 §15.4).
    func following(
        _ request: URLRequest, by response: URLResponse
    ) -> (URLRequest, keepsContent: Bool) {
        let current = self.currentRequest
        let isOther = (response as? HTTPURLResponse)?.statusCode == 303
        let isRepeated = !isOther && request.httpMethod == current?.httpMethod
        // What was in its request the protocol may have taken out; what an upload task sends is in none.
        let isMeant = request.hasHandedContent || !UploadBody(of: current).isSomething
        let keepsContent = isRepeated && isMeant && self.content.isSomething
        guard request.hasHandedContent else { return (request, keepsContent) }
        var next = request
        // The stream that the protocol was handed ended with its load.
        next.httpBodyStream = keepsContent ? current?.httpBodyStream : nil
        return (next, keepsContent)
    }

    /// What is being sent.
    var suspendableContent: SuspendableSource? { self.source?.source as? SuspendableSource }

    /// Whether the request that is under way may be made once more, though nobody knows what has become
    /// of it (RFC 9110 §9.2.2): nothing is done with one whose content is not whole.
    var mayBeginAnew: Bool {
        let method = Method(rawValue: self.currentRequest?.httpMethod ?? "GET")
        if method.isIdempotent { return true }
        return self.suspendableContent.map { !$0.isSpent } ?? false
    }

    /// The request as it is sent, with what its content says of itself.
    func completed(_ request: URLRequest) -> URLRequest {
        guard case .file = self.content, request.value(forHTTPHeaderField: "Content-Type") == nil,
            self.session?.settings.hasAdditionalHeader("Content-Type") != true,
            let type = self.content.contentType(method: request.httpMethod)
        else { return request }
        var completed = request
        completed.setValue(type, forHTTPHeaderField: "Content-Type")
        return completed
    }
}
