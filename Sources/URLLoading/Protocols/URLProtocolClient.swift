public import Foundation

/// Hears what a `URLProtocol` has to say: the task behind it.
///
/// Its methods may be called on any thread, also before `startLoading` returns. After the end, or once
/// `stopLoading` has been called for, nothing is heard any more; nothing that is said too early, twice
/// or too late traps.
public protocol URLProtocolClient: NSObjectProtocol, Sendable {
    /// The request leads to another one: the protocol is stopped, and a new one is begun with it where
    /// the session's delegate agrees.
    func urlProtocol(
        _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)

    /// The stored response that the protocol was made with is good: it becomes the response, with its
    /// body, and the load is over.
    func urlProtocol(
        _ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)

    /// The response has come; only the first counts.
    ///
    /// - Parameter policy: whether the session's cache may store it when it is whole.
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse,
        cacheStoragePolicy policy: URLCache.StoragePolicy)

    /// The next bytes of the body, and only those.
    ///
    /// They are held until the task takes them, in memory as far as 8 MiB, beyond that in a temporary
    /// file, which the caller waits for; in sessions of ephemeral configurations all in memory. The
    /// caller is not slowed down otherwise: whoever takes them may need its thread.
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)

    /// The body is whole.
    ///
    /// Where there was no response, one is made up that knows nothing but the URL.
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol)

    /// The load has failed: the task ends with this error, as it is.
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)

    /// A credential is wanted: the session's delegates are asked, and the challenge's `sender` gets
    /// the answer, on a queue of the load's.
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)

    /// The credential is not wanted any more.
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
