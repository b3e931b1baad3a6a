public import Foundation
import Synchronization

extension URLSession {
    /// Loads a request into memory.
    ///
    /// Cancelling the Swift task cancels the load.
    ///
    /// - Parameter delegate: of the one task that this makes; hears of challenges, redirections,
    ///   progress and metrics, and of each piece of the body where it is a
    ///   `URLSessionDataDelegate`, and falls through to the session's.
    /// - Throws: `URLError`; a status of the server's is none.
    public func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        let (body, response) = try await self.awaited { awaiting in
            self.make(self.order(request, awaiting, delegate))
        }
        return (try body.data(), response)
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
        let (body, response) = try await self.awaited { awaiting in
            self.makeUpload(self.order(request, awaiting, delegate, sending: .data(bodyData)))
        }
        return (try body.data(), response)
    }

    /// Sends a file, and loads the response into memory; see `data(for:delegate:)`.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL,
        delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        let (body, response) = try await self.awaited { awaiting in
            self.makeUpload(self.order(request, awaiting, delegate, sending: .file(fileURL)))
        }
        return (try body.data(), response)
    }

    /// Writes the response's body to a temporary file.
    ///
    /// Cancelling the Swift task cancels the load.
    ///
    /// - Parameter delegate: see `data(for:delegate:)`; a `URLSessionDownloadDelegate` hears how much
    ///   is written, and not of the end.
    /// - Returns: the file, which is the caller's to move or delete, and the response.
    /// - Throws: `URLError`, perhaps with resume data in its `userInfo`.
    public func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        let (body, response) = try await self.awaited { awaiting in
            var order = TaskOrder(request, for: self.download(to: awaiting))
            order.delegate = delegate
            return self.makeDownload(order)
        }
        return (try body.file(), response)
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
        let (body, response) = try await self.awaited { awaiting in
            var order = TaskOrder(resuming: resumeData, for: self.download(to: awaiting))
            order.delegate = delegate
            return self.makeDownload(order)
        }
        return (try body.file(), response)
    }

    /// Loads a request, and gives its body byte by byte as it comes.
    ///
    /// Returns when the head of the response is there; see `AsyncBytes` for the rest.
    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (AsyncBytes, URLResponse) {
        let made = Mutex<URLSessionDataTask?>(nil)
        let (body, response) =
            try await self.awaited { awaiting in
                let purpose = BytesPurpose { result in
                    switch result {
                    case .success((let body, let response)):
                        awaiting.complete(.bytes(body), response, nil)
                    case .failure(let error): awaiting.complete(nil, nil, error)
                    }
                }
                var order = TaskOrder(request, for: purpose)
                order.delegate = delegate
                order.prefersIncrementalDelivery = true
                let task = self.make(order)
                made.withLock { $0 = task }
                return task
            }
        guard case .bytes(let consumer) = body else { throw URLError(.unknown) }
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
        _ request: URLRequest, _ awaiting: AwaitedResult,
        _ delegate: (any URLSessionTaskDelegate)?, sending content: UploadBody? = nil
    ) -> TaskOrder {
        var order: TaskOrder
        if let content {
            order = TaskOrder(request, sending: content, for: awaiting)
        } else {
            order = TaskOrder(request, for: awaiting)
        }
        order.delegate = delegate
        order.prefersIncrementalDelivery = delegate is any URLSessionDataDelegate
        return order
    }

    private func download(to awaiting: AwaitedResult) -> DownloadPurpose {
        DownloadPurpose(for: .caller { awaiting.complete($0.map { .file($0) }, $1, $2) })
    }

    /// Makes and resumes a task, and waits for what its handler gets.
    ///
    /// - Parameter isolation: the caller's, to be left at the defaults. The closure captures it so
    ///   that it stays there too: it would else hop to another thread and back for each request.
    private func awaited(
        isolation: isolated (any Actor)? = #isolation,
        _ make: (AwaitedResult) -> URLSessionTask
    ) async throws -> (AwaitedResult.Body, URLResponse) {
        let awaiting = AwaitedResult()
        return try await withTaskCancellationHandler {
            _ = isolation
            let task = make(awaiting)
            awaiting.cover(task)
            task.resume()
            while true {
                // What is there already takes no asynchronous call, each of which changes executors twice.
                guard let event = awaiting.take() else {
                    await awaiting.wait(isolation: isolation)
                    continue
                }
                switch event {
                case .answered(let answer, let task, let load): task.answered(answer, load: load)
                case .body(let body, let response): return (body, response)
                case .failed(let error): throw error
                }
            }
        } onCancel: {
            awaiting.cancel()
        }
    }
}
