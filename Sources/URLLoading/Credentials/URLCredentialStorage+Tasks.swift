public import Foundation

/// The methods of a storage, with the task that it is done for; the handlers are called before the
/// methods return.
///
/// For programs alone: sessions call the methods without a task.
extension URLCredentialStorage {
    /// Gives the credentials for a space, by user; nil where there are none.
    public func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: ([String: URLCredential]?) -> Void
    ) {
        completionHandler(self.credentials(for: protectionSpace))
    }

    /// Adds a credential, or replaces the one of the same user.
    public func set(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) {
        self.set(credential, for: protectionSpace)
    }

    /// Removes a credential, if the storage has this very one.
    public func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace,
        options: [String: AnyObject]? = [:], task: URLSessionTask
    ) {
        self.remove(credential, for: protectionSpace, options: options)
    }

    /// Gives the default credential of a space; nil where there is none.
    public func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask,
        completionHandler: (URLCredential?) -> Void
    ) {
        completionHandler(self.defaultCredential(for: space))
    }

    /// Makes a credential the default of a space.
    public func setDefaultCredential(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) {
        self.setDefaultCredential(credential, for: protectionSpace)
    }
}

extension Notification.Name {
    /// A storage has changed; its object is the storage.
    ///
    /// Posted on the thread that changed it, before the method returns; where a session has stored a
    /// credential that was accepted, on a thread of its own.
    public static let NSURLCredentialStorageChanged = Notification.Name(
        rawValue: "NSURLCredentialStorageChangedNotification")
}

/// The key of an option, a boolean `NSNumber`: whether a synchronizable credential is to be removed.
public let NSURLCredentialStorageRemoveSynchronizableCredentials: String =
    "NSURLCredentialStorageRemoveSynchronizableCredentials"
