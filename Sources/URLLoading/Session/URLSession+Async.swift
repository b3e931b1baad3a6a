public import Foundation
import Synchronization

extension URLSession {
    /// Loads a request into memory.
    ///
    /// Cancelling the Swift task cancels the load.
    ///
    /// - Parameter delegate: of the one task that this makes; hears of challenges, redirections,
    ///   progress and metrics, and falls through to the session's.
    /// - Throws: `URLError`; a status of the server's is none.
    public func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaited { handler in
            self.make(self.order(request, handler, delegate))
        }
    }

    /// Loads a URL into memory; see `data(for:delegate:)`.
    public func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends data, and loads the response into memory; see `data(for:delegate:)`.
    ///
    /// - Parameter request: its own body does not count.
    public func upload(
        for request: URLRequest, from bodyData: Data,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaited { handler in
            self.makeUpload(self.order(request, handler, delegate, sending: .data(bodyData)))
        }
    }

    /// Sends a file, and loads the response into memory; see `data(for:delegate:)`.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await self.awaited { handler in
            self.makeUpload(self.order(request, handler, delegate, sending: .file(fileURL)))
        }
    }

    /// Writes the response's body to a temporary file.
    ///
    /// Cancelling the Swift task cancels the load.
    ///
    /// - Returns: the file, which is the caller's to move or delete, and the response.
    /// - Throws: `URLError`, perhaps with resume data in its `userInfo`.
    public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.awaited { handler in
            var order = TaskOrder(request, for: DownloadPurpose(for: .caller(handler)))
            order.delegate = delegate
            return self.makeDownload(order)
        }
    }

    /// Writes the response's body to a temporary file; see `download(for:delegate:)`.
    public func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Goes on where an earlier download was broken off; see `downloadTask(withResumeData:)` and
    /// `download(for:delegate:)`.
    public func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await self.awaited { handler in
            var order = TaskOrder(
                resuming: resumeData, for: DownloadPurpose(for: .caller(handler)))
            order.delegate = delegate
            return self.makeDownload(order)
        }
    }

    /// Loads a request, and gives its body byte by byte as it comes.
    ///
    /// Returns when the head of the response is there; see `AsyncBytes` for the rest.
    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        let made = Mutex<URLSessionDataTask?>(nil)
        let (consumer, response) =
            try await self.awaited { handler in
                let purpose = BytesPurpose { result in
                    switch result {
                    case .success(let (consumer, response)): handler(consumer, response, nil)
                    case .failure(let error): handler(nil, nil, error)
                    }
                }
                var order = TaskOrder(request, for: purpose)
                order.delegate = delegate
                order.prefersIncrementalDelivery = true
                let task = self.make(order)
                made.withLock { $0 = task }
                return task
            } as (BytesConsumer, URLResponse)
        let task = made.withLock { $0 } ?? URLSessionDataTask()
        return (AsyncBytes(task: task, consumer: consumer) { task.cancel() }, response)
    }

    /// Loads a URL, and gives its body byte by byte as it comes; see `bytes(for:delegate:)`.
    public func bytes(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        try await self.bytes(for: URLRequest(url: url), delegate: delegate)
    }

    // MARK: How

    private func order(
        _ request: URLRequest, _ handler: @escaping HandlerPurpose.Handler,
        _ delegate: (any URLSessionTaskDelegate)?, sending content: UploadBody? = nil
    ) -> TaskOrder {
        let purpose = HandlerPurpose(isDirect: true, handler)
        var order =
            content.map { TaskOrder(request, sending: $0, for: purpose) }
            ?? TaskOrder(request, for: purpose)
        order.delegate = delegate
        return order
    }

    /// Makes and resumes a task, and waits for what its handler gets.
    ///
    /// - Parameter isolation: the caller's, to be left at the defaults. The closure captures it so
    ///   that it stays there too: it would else hop to another thread and back for each request.
    private func awaited<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation,
        _ make: (@escaping @Sendable (Value?, URLResponse?, (any Error)?) -> Void) -> URLSessionTask
    ) async throws -> (Value, URLResponse) {
        let cancellation = TaskCancellation()
        return try await withTaskCancellationHandler {
            _ = isolation
            // The handler is called once: the task completes exactly once. Where that is at once, as
            // with a stored response in memory, nothing is suspended.
            return try await withCheckedThrowingContinuation(isolation: isolation) { continuation in
                let task = make { value, response, error in
                    if let value, let response {
                        continuation.resume(returning: (value, response))
                    } else {
                        continuation.resume(throwing: error ?? URLError(.unknown))
                    }
                }
                cancellation.cover(task)
                task.resume()
            }
        } onCancel: {
            cancellation.cancel()
        }
    }
}

/// Carries the cancellation of a Swift task to a URL task, whichever comes first.
private final class TaskCancellation: Sendable {
    private struct State {
        var isCancelled = false
        var task: URLSessionTask?
    }

    private let state = Mutex(State())

    func cover(_ task: URLSessionTask) {
        let isCancelled = self.state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    func cancel() {
        let task = self.state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
