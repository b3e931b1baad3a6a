import Dispatch
import Foundation
import Testing

@testable import URLLoading

/// Implements nothing that is asked for.
private final class DeafDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    let ended = DispatchSemaphore(value: 0)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        if error == nil { self.ended.signal() }
    }
}

/// The threads that all tasks of a process share.
enum SharedThreads {
    /// Runs work on one of them while other tasks have blocked the rest; it has to end the process.
    static func amongBlocked(_ work: @escaping @Sendable () -> Void) async {
        await Task.detached { Self.blockOthers(work) }.value
    }

    private static func blockOthers(_ work: () -> Void) {
        let (began, never) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let count = ProcessInfo.processInfo.activeProcessorCount
        for _ in 0..<4 * count {
            Task.detached {
                began.signal()
                Self.wait(for: never)
            }
        }
        for _ in 1..<count where began.wait(timeout: .now() + 10) == .timedOut { exit(4) }
        work()
        exit(5)
    }

    private static func wait(for event: DispatchSemaphore) { event.wait() }
}

@Suite("In a program whose tasks block all the threads that tasks share")
struct BlockedThreadsTests {
    @Test("a load is told to a delegate that lacks what it is asked for")
    func load() async {
        await #expect(processExitsWith: .success) {
            await SharedThreads.amongBlocked {
                let delegate = DeafDelegate()
                let session = URLSession(
                    configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
                guard let url = URL(string: "data:,text") else { exit(3) }
                session.dataTask(with: url).resume()
                exit(delegate.ended.wait(timeout: .now() + 30) == .success ? 0 : 1)
            }
        }
    }

    @Test("flush and reset call back")
    func flush() async {
        await #expect(processExitsWith: .success) {
            await SharedThreads.amongBlocked {
                let session = URLSession(configuration: .ephemeral)
                let done = DispatchSemaphore(value: 0)
                session.flush { session.reset { done.signal() } }
                exit(done.wait(timeout: .now() + 30) == .success ? 0 : 1)
            }
        }
    }
}
