package import LarderCookies
package import LarderCredentials
package import LarderHTTP
import Synchronization

/// The cookies and credentials that the processes of one program keep together.
///
/// All of them work at the same time: each holds the file only while it reads or writes something,
/// changes go by the identity of what they change, and `isStale` says when there is something new
/// to read. What is read and written waits for the disk on one thread, or, by `readCookies` and
/// `readCredentials`, keeps the caller's waiting.
package final class SharedState: Sendable {
    private let file: StateFile
    private let sharing: StateSharing
    private let directory: StateDirectory
    private let isPrepared = Atomic(false)
    private let pace = Pace()
    package let configuration: StateConfiguration

    /// Touches no disk; the first record makes what is needed.
    ///
    /// - Parameter report: hears what a person should know; any thread, must not block.
    package init(
        _ configuration: StateConfiguration, now: Timestamp,
        report: @escaping @Sendable (StateEvent) -> Void = { _ in }
    ) {
        let directory = StateDirectory(path: configuration.directory)
        let sharing = StateSharing(directory)
        self.configuration = configuration
        self.directory = directory
        self.sharing = sharing
        self.file = StateFile.shared(
            configuration, sharing, now: now, report: report)
    }

    /// Where changes of cookies are kept, and cookies loaded from.
    package var cookies: some CookieStorage {
        PacedCookies(cookies: self.file.cookies(of: ""), pace: self.pace)
    }

    /// Where changes of credentials are kept, and credentials loaded from.
    package var credentials: some CredentialStorage { self.file.credentials(of: "") }

    /// Whether another process has changed something since this one has read it.
    ///
    /// True before anything was read. Any thread; quick.
    package var isStale: Bool { self.sharing.isStale }

    /// Makes the directory, so that it is there before the first record is; once.
    package func prepare() throws(StateError) {
        if self.isPrepared.load(ordering: .acquiring) { return }
        try self.directory.make()
        self.isPrepared.store(true, ordering: .releasing)
    }

    // MARK: Reading at once

    /// Reads all cookies, and waits for them.
    ///
    /// - Parameter body: takes them in, before this process writes anything more; must not call back.
    package func readCookies<R: Sendable>(
        _ body: @Sendable ([Cookie]) -> R
    ) throws(StateError) -> R {
        try self.file.perform { (file) throws(StateError) in
            body(try file.cookieRecords())
        }
    }

    /// Reads all cookies without waiting.
    ///
    /// - Parameter body: gets nil where they cannot be read.
    package func readCookiesLater(_ body: @escaping @Sendable ([Cookie]?) -> Void) {
        Task(executorPreference: HouseExecutor.shared) {
            await self.file.withCookies(body)
        }
    }

    /// Reads all credentials, and waits for them: the changes that lead to them.
    package func readCredentials() throws(StateError) -> [CredentialChange] {
        try self.file.perform { (file) throws(StateError) in
            try file.credentialRecords(of: "")
        }
    }
}

extension StateFile {
    /// Runs work on the state's own thread, and waits for it; not from there.
    nonisolated func perform<R: Sendable>(
        _ work: @Sendable (isolated StateFile) throws(StateError) -> R
    ) throws(StateError) -> R {
        try self.thread.perform { () throws(StateError) in
            let result = self.assumeIsolated { file in
                Result { () throws(StateError) in try work(file) }
            }
            return try result.get()
        }
    }

    func cookieRecords() throws(StateError) -> [Cookie] {
        try self.records([.cookie], of: "").compactMap {
            guard case .cookie(let cookie) = $0 else { return nil }
            return cookie
        }
    }

    fileprivate func withCookies(_ body: @Sendable ([Cookie]?) -> Void) {
        body(try? self.cookieRecords())
    }
}
