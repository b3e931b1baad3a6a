extension URLSessionWebSocketTask {
    /// Sends a ping, and returns when its pong has come.
    ///
    /// - Throws: what `sendPing(pongReceiveHandler:)` gives its handler.
    public func sendPing() async throws {
        try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
            self.sendPing { error in
                if let error { done.resume(throwing: error) } else { done.resume() }
            }
        }
    }
}
