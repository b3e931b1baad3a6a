import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

/// Several things at the same time.
enum Race {
    /// Suspends a task and resumes it as often, from several threads at once.
    static func suspendAndResume(_ task: URLSessionTask) async {
        let toggle: @Sendable () -> Void = {
            for _ in 0..<4 {
                task.suspend()
                task.resume()
            }
        }
        await Self.atOnce(toggle, toggle, toggle)
    }

    /// Has all of them done at once, each on a thread of its own, and waits for them.
    static func atOnce(_ acts: (@Sendable () -> Void)...) async {
        await withTaskGroup { group in
            let gate = Gate(count: acts.count)
            for act in acts {
                group.addTask {
                    await gate.pass()
                    act()
                }
            }
        }
    }

    /// Lets those who come through when all are there.
    private actor Gate {
        private var missing: Int
        private var waiting: [CheckedContinuation<Void, Never>] = []

        init(count: Int) {
            self.missing = count
        }

        func pass() async {
            self.missing -= 1
            guard self.missing > 0 else {
                for waiter in self.waiting { waiter.resume() }
                self.waiting = []
                return
            }
            await withCheckedContinuation { self.waiting.append($0) }
        }
    }
}

/// A delegate whose answers a test gives, from wherever, as often and as late as it likes.
final class HoldingDelegate: RecordingDelegate, @unchecked Sendable {
    /// What it was asked, with the handlers that are open.
    struct Asked: Sendable {
        var redirections: [@Sendable (URLRequest?) -> Void] = []
        var challenges: [@Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void] =
            []
        var streams: [@Sendable (InputStream?) -> Void] = []
        var dispositions: [@Sendable (URLSession.ResponseDisposition) -> Void] = []
        var storings: [@Sendable (CachedURLResponse?) -> Void] = []

        var count: Int {
            self.redirections.count + self.challenges.count + self.streams.count
                + self.dispositions.count + self.storings.count
        }
    }

    let asked = Event(Asked())

    /// - Parameter allowsAll: every response is allowed at once; the other questions are held.
    init(allowsAll: Bool = false) {
        super.init()
        self.redirection.withLock {
            $0 = { [asked] _, answer in asked.change { $0.redirections.append(answer) } }
        }
        if allowsAll { return }
        self.disposition.withLock {
            $0 = { [asked] answer in asked.change { $0.dispositions.append(answer) } }
        }
    }

    /// Waits until it has been asked so often.
    func questions(_ count: Int = 1) async throws -> Asked {
        try await self.asked.wait(for: "question \(count)") { $0.count >= count }
        return self.asked.value
    }

    override func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.note("challenge", session)
        self.asked.change { $0.challenges.append(completionHandler) }
    }

    override func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        self.note("stream", session)
        self.asked.change { $0.streams.append(completionHandler) }
    }

    override func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        self.note("storing", session)
        self.asked.change { $0.storings.append(completionHandler) }
    }
}
