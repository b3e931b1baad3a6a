public import Foundation

/// A data task that sends a body: data, a file, or what a delegate's stream gives.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    public override init() { super.init() }

    override init(_ order: borrowing TaskOrder, of session: URLSession) {
        super.init(order, of: session)
    }

    /// Cancels the task, and says what `uploadTask(withResumeData:)` needs to go on.
    ///
    /// The task completes with `URLError.cancelled`. It can be gone on with where the server keeps what
    /// comes and has said so (by a 104 of draft-ietf-httpbis-resumable-upload, interoperability
    /// version 6), and the content is data, a file, or a delegate's stream.
    ///
    /// - Parameter completionHandler: called once, on any thread: nil where it cannot be gone on with.
    ///   The data contains the content where that is data, and names the file where it is one, which
    ///   must not change.
    @preconcurrency
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        let purpose = self.purpose as? UploadPurpose
        let isHeard = purpose?.produceResumeData(for: completionHandler) ?? false
        self.cancel()
        if !isHeard { FileWork.queue.async { completionHandler(nil) } }
    }

    /// Cancels the task; see `cancel(byProducingResumeData:)`.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            self.cancel { continuation.resume(returning: $0) }
        }
    }
}
