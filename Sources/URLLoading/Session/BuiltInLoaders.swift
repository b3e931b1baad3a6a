import Foundation
import Synchronization

/// What a session loads by: its engine, by scheme.
final class BuiltInLoaders: SessionLoaders {
    private let settings: URLSessionConfiguration
    private let engine: SessionEngine

    init(_ settings: URLSessionConfiguration) {
        self.settings = settings
        self.engine = SessionEngine(settings)
    }

    func loader(for request: URLRequest, of task: URLSessionTask) -> (any Loader)? {
        guard let scheme = request.url?.scheme?.lowercased() else { return nil }
        return SessionEngine.knows(scheme) ? self.engine : nil
    }

    func invalidate() {
        self.engine.invalidate()
    }

    func reset(done: @escaping @Sendable () -> Void) {
        self.engine.renewConnections()
        done()
    }

    func flush(done: @escaping @Sendable () -> Void) {
        self.engine.renewConnections()
        done()
    }
}
