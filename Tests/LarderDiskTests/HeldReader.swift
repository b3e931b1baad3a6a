import Foundation
import LarderLMDB

/// A read transaction that lasts until it is ended, on a thread of its own.
final class HeldReader: Sendable {
    private let release = DispatchSemaphore(value: 0)
    private let ended = AsyncStream<Void>.makeStream()

    /// Begins one; it has its snapshot when this returns.
    static func begin(on environment: Environment) async -> HeldReader {
        let reader = HeldReader()
        let begun = AsyncStream<Void>.makeStream()
        Thread {
            _ = try? environment.read { (_) throws(LMDBError) in
                begun.continuation.yield()
                reader.release.wait()
            }
            reader.ended.continuation.yield()
        }.start()
        var iterator = begun.stream.makeAsyncIterator()
        _ = await iterator.next()
        return reader
    }

    /// Ends it, and waits for that; once.
    func end() async {
        self.release.signal()
        var iterator = self.ended.stream.makeAsyncIterator()
        _ = await iterator.next()
    }
}
