import Foundation

// The async forms of methods that call back.

extension URLSession {
    /// Empties what the session keeps of cookies, responses and credentials, and makes new connections
    /// from then on.
    public func reset() async {
        await withCheckedContinuation { done in self.reset { done.resume() } }
    }

    /// Writes what is to last, and makes new connections from then on.
    public func flush() async {
        await withCheckedContinuation { done in self.flush { done.resume() } }
    }
}

extension HTTPCookieStorage {
    /// The cookies for a task's request; nil: none.
    public func cookies(for task: URLSessionTask) async -> [HTTPCookie]? {
        await withCheckedContinuation { done in
            self.getCookiesFor(task) { done.resume(returning: $0) }
        }
    }
}

extension URLCache {
    /// The stored response to a task's request; nil: there is none.
    public func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        await withCheckedContinuation { done in
            self.getCachedResponse(for: dataTask) { done.resume(returning: $0) }
        }
    }
}

extension URLCredentialStorage {
    /// The credentials of a space by their users, for a task; nil: none.
    public func credentials(
        for space: URLProtectionSpace, task: URLSessionTask
    ) async -> [String: URLCredential]? {
        await withCheckedContinuation { done in
            self.getCredentials(for: space, task: task) { done.resume(returning: $0) }
        }
    }

    /// The credential that is used in a space unless another is named, for a task; nil: there is none.
    public func defaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask
    ) async -> URLCredential? {
        await withCheckedContinuation { done in
            self.getDefaultCredential(for: space, task: task) { done.resume(returning: $0) }
        }
    }
}
