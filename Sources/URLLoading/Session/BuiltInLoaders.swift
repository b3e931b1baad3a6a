import Foundation
import Synchronization

/// What a session loads by: the program's protocols, then what is built in, by scheme.
final class BuiltInLoaders: SessionLoaders {
    private let settings: URLSessionConfiguration
    private let engine: SessionEngine

    init(_ settings: URLSessionConfiguration) {
        self.settings = settings
        self.engine = SessionEngine(settings)
    }

    func loader(for request: URLRequest, of task: URLSessionTask) -> (any Loader)? {
        if !self.settings.isBackground,
            let loader = ProtocolLoader.loader(
                for: request, task: task, classes: self.settings.protocolClasses,
                cache: self.settings.urlCache)
        {
            return loader
        }
        guard let scheme = request.url?.scheme?.lowercased() else { return nil }
        if SessionEngine.knows(scheme) { return self.engine }
        switch scheme {
        case "file": return FileLoader()
        case "data": return DataLoader()
        default: return nil
        }
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
