import Foundation
import Synchronization

/// What a session loads by, where tests do not say otherwise.
final class BuiltInLoaders: SessionLoaders {
    private let settings: URLSessionConfiguration

    init(_ settings: URLSessionConfiguration) {
        self.settings = settings
    }

    func loader(for request: URLRequest, of task: URLSessionTask) -> (any Loader)? {
        nil
    }

    func invalidate() {}

    func reset(done: @escaping @Sendable () -> Void) {
        done()
    }

    func flush(done: @escaping @Sendable () -> Void) {
        done()
    }
}
