import NIOCore

/// Keeps a body in memory for an async method, and gives each piece to the task's own delegate too.
final class HeardConsumer: BodyConsumer {
    private let memory: MemoryConsumer
    private let delegate: DelegateConsumer

    init(keeping memory: MemoryConsumer, task: URLSessionTask) {
        self.memory = memory
        self.delegate = DelegateConsumer(task: task, isCallers: true)
    }

    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.memory.take(piece) { [delegate] error in
            guard error == nil else { return ready(error) }
            delegate.take(piece, ready: ready)
        }
    }

    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.delegate.finish(done: done)
    }

    func stop() {
        self.memory.stop()
        self.delegate.stop()
    }
}
