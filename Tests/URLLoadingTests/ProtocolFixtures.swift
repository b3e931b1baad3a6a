import Dispatch
import Foundation
import LarderHTTP
import NIOCore
import Synchronization

@testable import LarderProcess
@testable import URLLoading

/// What a scripted protocol does; rides on its request.
final class ProtocolScript: Sendable {
    /// Unchecked: what a test does with it is the test's business.
    struct Instance: @unchecked Sendable {
        let it: URLProtocol
        var client: (any URLProtocolClient)? { self.it.client }

        func respond(
            _ status: Int = 200, _ fields: [String: String] = [:],
            _ policy: URLCache.StoragePolicy = .notAllowed
        ) {
            guard let url = self.it.request.url,
                let response = HTTPURLResponse(
                    url: url, statusCode: status, httpVersion: nil, headerFields: fields)
            else { return }
            self.client?.urlProtocol(self.it, didReceive: response, cacheStoragePolicy: policy)
        }

        func load(_ text: String) { self.client?.urlProtocol(self.it, didLoad: Data(text.utf8)) }
        func finish() { self.client?.urlProtocolDidFinishLoading(self.it) }
        func fail(_ error: any Error) { self.client?.urlProtocol(self.it, didFailWithError: error) }
    }

    let started = Event<[Instance]>([])
    let stops = Event(0)
    let run: @Sendable (Instance) -> Void

    init(_ run: @escaping @Sendable (Instance) -> Void = { _ in }) {
        self.run = run
    }

    static let key = "script"

    func request(_ url: String = "http://protocol.test/a") -> URLRequest {
        let request = NSMutableURLRequest(url: URL(string: url) ?? URL(fileURLWithPath: "/"))
        URLProtocol.setProperty(self, forKey: Self.key, in: request)
        return request as URLRequest
    }

    /// Begins a load with it.
    func load(
        _ recorder: LoadRecorder, by kind: AnyClass = ScriptedProtocol.self,
        cache: URLCache? = nil, policy: NSURLRequest.CachePolicy = .useProtocolCachePolicy,
        patience: DispatchTimeInterval = OverdueAnswers.patience, body: UploadSource? = nil,
        changing change: (inout URLRequest) -> Void = { _ in }
    ) -> (any Load)? {
        var request = self.request()
        change(&request)
        let order = LoadOrder.of(request, body: body)
        let loader = ProtocolLoader.loader(
            for: request, task: order.task, classes: [kind], cache: cache, policy: policy,
            patience: patience)
        return loader?.load(order, observer: recorder)
    }

    /// The protocol, once it has been started.
    func instance() async throws -> Instance? {
        try await self.started.wait(for: "startLoading") { !$0.isEmpty }
        return self.started.value.first
    }
}

/// Does what the script in its request says; knows no other requests.
class ScriptedProtocol: URLProtocol {
    private static func script(_ request: URLRequest) -> ProtocolScript? {
        URLProtocol.property(forKey: ProtocolScript.key, in: request) as? ProtocolScript
    }

    override class func canInit(with request: URLRequest) -> Bool { self.script(request) != nil }

    override func startLoading() {
        guard let script = Self.script(self.request) else { return }
        script.run(.init(it: self))
        script.started.change { $0.append(.init(it: self)) }
    }

    override func stopLoading() {
        Self.script(self.request)?.stops.change { $0 += 1 }
    }
}

/// Hears the answers to a protocol's challenges.
final class RecordingSender: NSObject, URLAuthenticationChallengeSender, Sendable {
    let heard = Event<[String]>([])

    private func note(_ word: String) { self.heard.change { $0.append(word) } }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        self.note("use")
    }
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {
        self.note("continue")
    }
    func cancel(_ challenge: URLAuthenticationChallenge) { self.note("cancel") }
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) { self.note("default") }
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        self.note("reject")
    }
}

/// Content that a test puts in piece by piece.
final class FedContent: BodySource {
    private let steps = Mutex<(steps: [BodyStep], wake: (@Sendable () -> Void)?)>(([], nil))
    let isCancelled = Event(false)
    let isAwaited = Event(false)

    func put(_ step: BodyStep) {
        let wake = self.steps.withLock { state in
            state.steps.append(step)
            return state.wake
        }
        wake?()
    }

    func attach(wake: @escaping @Sendable () -> Void) { self.steps.withLock { $0.wake = wake } }

    func next() -> BodyStep {
        let step = self.steps.withLock { $0.steps.isEmpty ? nil : $0.steps.removeFirst() }
        if step == nil { self.isAwaited.change { $0 = true } }
        return step ?? .pending
    }

    func cancel() { self.isCancelled.change { $0 = true } }
}

/// Waits for objects to be let go by whoever is just about to.
enum Released {
    static func wait(until isGone: () -> Bool) async throws {
        for _ in 0..<100_000 {
            if isGone() { return }
            await Task.yield()
        }
        throw TimedOut(description: "waited for objects to be let go")
    }
}
