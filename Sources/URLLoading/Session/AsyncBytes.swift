import Foundation
import Synchronization

extension URLSession {
    /// The body of a response, byte by byte, as it comes.
    ///
    /// The transfer goes on as bytes are taken: some 64 KiB are read ahead, then the origin waits. To
    /// be iterated once. The task is cancelled when the iterator goes before the end, and when the
    /// sequence goes without having been iterated; cancelling the Swift task that awaits the next byte
    /// cancels it too, and throws `URLError.cancelled`. An error is thrown once: behind it, as behind
    /// the last byte, comes nil for ever, whichever copy of an iterator asks.
    public struct AsyncBytes: AsyncSequence, Sendable {
        /// A byte.
        public typealias Element = UInt8
        public typealias Failure = any Error

        /// The task that loads them.
        public let task: URLSessionDataTask
        private let hold: AsyncBytesHold

        init(
            task: URLSessionDataTask, consumer: BytesConsumer,
            cancel: @escaping @Sendable () -> Void
        ) {
            self.task = task
            self.hold = AsyncBytesHold(consumer, cancel: cancel)
        }

        public func makeAsyncIterator() -> Iterator {
            Iterator(AsyncBytesReader(self.hold))
        }

        /// Takes the bytes.
        public struct Iterator: AsyncIteratorProtocol {
            /// A byte.
            public typealias Element = UInt8
            public typealias Failure = any Error

            @usableFromInline var chunk: [UInt8] = []
            @usableFromInline var position = 0
            private let reader: AsyncBytesReader

            init(_ reader: AsyncBytesReader) {
                self.reader = reader
            }

            /// The next byte; nil behind the last one.
            @inlinable
            public mutating func next() async throws -> UInt8? {
                if self.position < self.chunk.count {
                    defer { self.position &+= 1 }
                    return self.chunk[self.position]
                }
                return try await self.refill()
            }

            /// The next byte; nil behind the last one.
            @inlinable
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(any Error) -> UInt8? {
                if self.position < self.chunk.count {
                    defer { self.position &+= 1 }
                    return self.chunk[self.position]
                }
                return try await self.refill()
            }

            @usableFromInline
            mutating func refill() async throws -> UInt8? {
                self.position = 0
                self.chunk = []
                guard let chunk = try await self.reader.chunk(), let first = chunk.first else {
                    return nil
                }
                self.chunk = chunk
                self.position = 1
                return first
            }
        }
    }
}

/// Ends a transfer that nobody reads any more.
final class AsyncBytesHold: Sendable {
    let consumer: BytesConsumer
    let cancel: @Sendable () -> Void

    init(_ consumer: BytesConsumer, cancel: @escaping @Sendable () -> Void) {
        self.consumer = consumer
        // Read to its end it is done, though its task may have something to store still.
        self.cancel = { if !consumer.isWhole { cancel() } }
    }

    // Of no effect on a task that is over.
    deinit { self.cancel() }
}

/// One iteration.
final class AsyncBytesReader: Sendable {
    private let hold: AsyncBytesHold

    init(_ hold: AsyncBytesHold) {
        self.hold = hold
    }

    deinit { self.hold.cancel() }

    func chunk() async throws -> [UInt8]? {
        if Task.isCancelled {
            self.hold.cancel()
            guard self.hold.consumer.leave() else { return nil }
            throw URLError(.cancelled)
        }
        if let chunk = self.hold.consumer.chunkAtHand() {
            // Where more comes than is taken, who shares the actor would not get to run, nor to cancel this.
            await Task.yield()
            return chunk
        }
        let cancel = self.hold.cancel
        return try await withTaskCancellationHandler {
            try await self.hold.consumer.chunk()
        } onCancel: {
            cancel()
        }
    }
}
