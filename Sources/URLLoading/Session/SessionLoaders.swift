import Foundation
import LarderHTTP
import Synchronization

/// Who loads what in a session: the program's protocols first, then what is built in, by scheme.
protocol SessionLoaders: Sendable {
    /// nil: nobody knows such URLs.
    func loader(for request: URLRequest, of task: URLSessionTask) -> (any Loader)?
    /// Whether classes of the program's are asked about each request, which may take any time.
    var asksProgram: Bool { get }
    /// Whether a class of the program's would load a request. It may be asked once more when it is loaded.
    func isProgramsOwn(_ request: URLRequest, of task: URLSessionTask) -> Bool
    /// Connects to a server, through the proxy where there is one.
    ///
    /// - Parameters:
    ///   - scheme: of what will be spoken, whose proxy it is; nil: any.
    ///   - completion: called once, on any thread, unless the dial was cancelled first.
    func connect(
        host: String, port: UInt16, for scheme: Scheme?,
        completion: @escaping @Sendable (Result<DialledSocket, URLError>) -> Void
    ) -> (any TunnelDial)?
    /// Nothing will be loaded any more. Any thread, also twice.
    func invalidate()
    /// Forgets and lets go of everything that the session keeps; `done` may come on any thread.
    func reset(done: @escaping @Sendable () -> Void)
    /// Writes what is to last, and lets go of what is not.
    func flush(done: @escaping @Sendable () -> Void)
}

extension SessionLoaders {
    var asksProgram: Bool { false }

    func isProgramsOwn(_ request: URLRequest, of task: URLSessionTask) -> Bool { false }

    func connect(
        host: String, port: UInt16, for scheme: Scheme?,
        completion: @escaping @Sendable (Result<DialledSocket, URLError>) -> Void
    ) -> (any TunnelDial)? {
        completion(.failure(URLError(.unsupportedURL)))
        return nil
    }
}
