/// A running proxy, in a few facts, and what it has done since it started, all sessions together.
///
/// What is added to it later is optional, as a proxy of an older release does not tell it.
package struct DaemonStatus: Codable, Sendable, Equatable {
    /// What went on with clients.
    package struct Clients: Codable, Sendable, Equatable {
        package var openConnections: UInt64 = 0
        package var connections: UInt64 = 0
        /// Closed at once, as their clients had as many as they may.
        package var connectionsRefused: UInt64 = 0
        /// That had to wait, as there were as many as there may be.
        package var connectionsDelayed: UInt64 = 0
        /// How often none could be accepted, for want of descriptors or memory.
        package var acceptsFailed: UInt64 = 0
        /// Requests that were read, tunnels and refused ones included.
        package var requests: UInt64 = 0
        /// Bytes on the sockets, those of tunnels included.
        package var bytesReceived: UInt64 = 0
        package var bytesSent: UInt64 = 0
        package var openTunnels: UInt64 = 0
        package var tunnels: UInt64 = 0
        /// Answers that did not reach their end.
        package var answersCut: UInt64 = 0
        /// Answers that the proxy gave of its own, by status.
        package var ownAnswers: [String: UInt64] = [:]

        package init() {}
    }

    /// What went on with origins, and parents.
    package struct Origins: Codable, Sendable, Equatable {
        /// In use or idle; tunnels are not among them.
        package var openConnections: UInt64 = 0
        package var connections: UInt64 = 0
        /// Under way, those that wait for a connection included.
        package var openFetches: UInt64 = 0
        package var fetches: UInt64 = 0
        /// That had to wait until a name could be looked up for them.
        package var lookupsDelayed: UInt64 = 0

        package init() {}
    }

    package var release: String
    package var pid: Int32
    package var startedMicroseconds: Int64
    /// The addresses that clients connect to, with the ports that were really taken.
    package var listeners: [String]
    package var sessions: [String]
    /// nil: it runs on defaults.
    package var configuration: String?
    /// This and the next are nil from a proxy of an older release.
    package var clients: Clients?
    package var origins: Origins?

    package init(
        release: String, pid: Int32, startedMicroseconds: Int64, listeners: [String],
        sessions: [String], configuration: String?
    ) {
        self.release = release
        self.pid = pid
        self.startedMicroseconds = startedMicroseconds
        self.listeners = listeners
        self.sessions = sessions
        self.configuration = configuration
    }
}
