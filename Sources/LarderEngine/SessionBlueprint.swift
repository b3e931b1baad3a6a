package import LarderDisk
package import LarderPolicy
package import LarderSession
package import LarderState
package import LarderStore
package import LarderTransfer

/// What a session is to be put together from.
package struct SessionBlueprint: Sendable {
    /// The kinds of session of the URL Loading System.
    package enum Kind: String, Sendable {
        /// Caches in memory and on disk.
        case `default`
        /// Keeps everything in memory and leaves nothing behind.
        case ephemeral
        /// As default; and its transfers outlive their clients and the process.
        case background

        /// Whether anything of it outlives the process.
        package var isPersistent: Bool { self != .ephemeral }
    }

    package var kind: Kind
    package var session: SessionConfiguration
    package var memory: MemoryConfiguration
    /// Where and how much; not looked at for an ephemeral session.
    ///
    /// nil: memory alone.
    package var disk: DiskConfiguration?
    package var transfer: TransferConfiguration
    /// nil: cookies are the clients' business.
    package var cookies: CookieHandling?
    /// Where its cookies and credentials outlive the process; not looked at for an ephemeral session.
    ///
    /// nil: in memory alone.
    package var state: StateConfiguration?

    /// The rules that the session's cache follows.
    package var policy: PolicyConfiguration { self.session.policy }

    package init(
        kind: Kind, session: SessionConfiguration, memory: MemoryConfiguration,
        disk: DiskConfiguration?, transfer: TransferConfiguration,
        cookies: CookieHandling? = nil, state: StateConfiguration? = nil
    ) {
        self.cookies = cookies
        self.state = state
        self.kind = kind
        self.session = session
        self.memory = memory
        self.disk = disk
        self.transfer = transfer
    }
}
