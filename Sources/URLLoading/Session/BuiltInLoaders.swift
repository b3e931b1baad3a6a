import Dispatch
import Foundation
import LarderHTTP
import Synchronization

/// What a session loads by: the program's protocols, then what is built in, by scheme.
final class BuiltInLoaders: SessionLoaders {
    private let settings: URLSessionConfiguration
    private let engine: SessionEngine
    private let classes: [AnyClass]?

    init(_ settings: URLSessionConfiguration) {
        self.settings = settings
        self.engine = SessionEngine(settings)
        self.classes = settings.protocolClasses
    }

    func loader(for request: URLRequest, of task: URLSessionTask) -> (any Loader)? {
        if let own = self.programsOwn(for: request, of: task) { return own }
        guard let url = request.url else { return nil }
        if url.isPlainlyWeb { return self.engine }
        guard let scheme = url.scheme else { return nil }
        switch scheme.lowercased() {
        case "file": return FileLoader()
        case "data": return DataLoader()
        case "ws", "wss":
            guard task is URLSessionWebSocketTask, let session = task.session else { return nil }
            return WebSocketLoader(session: session)
        case let other: return SessionEngine.knows(other) ? self.engine : nil
        }
    }

    var asksProgram: Bool {
        self.classes?.isEmpty == false || !RegisteredProtocols.all.isEmpty
    }

    func isProgramsOwn(_ request: URLRequest, of task: URLSessionTask) -> Bool {
        self.programsOwn(for: request, of: task) != nil
    }

    private func programsOwn(
        for request: URLRequest, of task: URLSessionTask
    ) -> (any Loader)? {
        ProtocolLoader.loader(
            for: request, task: task, classes: self.classes,
            additional: self.settings.additionalFields, cache: self.settings.urlCache,
            policy: self.settings.requestCachePolicy)
    }

    func connect(
        host: String, port: UInt16, for scheme: Scheme?,
        completion: @escaping @Sendable (Result<DialledSocket, URLError>) -> Void
    ) -> (any TunnelDial)? {
        self.engine.connect(host: host, port: port, for: scheme, completion: completion)
    }

    func invalidate() {
        self.engine.invalidate()
    }

    func reset(done: @escaping @Sendable () -> Void) {
        self.engine.renewConnections()
        // The cache's files may keep it waiting.
        DispatchQueue.global().async { [self] in
            self.settings.urlCache?.removeAllCachedResponses()
            self.settings.httpCookieStorage?.removeAll()
            self.settings.urlCredentialStorage?.removeAll()
            self.flushStorages(done)
        }
    }

    func flush(done: @escaping @Sendable () -> Void) {
        self.engine.renewConnections()
        DispatchQueue.global().async { [self] in
            self.settings.urlCache?.flush()
            self.flushStorages(done)
        }
    }

    /// Calls back when all changes of cookies and credentials outlive the process, or cannot be kept.
    private func flushStorages(_ done: @escaping @Sendable () -> Void) {
        Task(executorPreference: HouseExecutor.shared) { [settings] in
            async let cookies: Void? = settings.httpCookieStorage?.flush()
            async let credentials: Void? = settings.urlCredentialStorage?.flush()
            _ = await (cookies, credentials)
            done()
        }
    }
}
