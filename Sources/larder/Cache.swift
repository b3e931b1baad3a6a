import ArgumentParser
import Glibc
import LarderConfig
import LarderControl
import LarderDaemon

/// The verb `larder cache …`.
struct Cache: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Look into the cache, remove from it, make its file smaller.",
        discussion: """
            Reads the cache's file itself, whether a proxy runs or not; what only the running proxy \
            knows it asks through the control socket.
            """,
        subcommands: [
            CacheList.self, CacheShow.self, CacheStats.self, CacheMissing.self, CachePurge.self,
            CacheVerify.self, CacheExport.self, CacheImport.self, CacheCompact.self,
        ])
}

/// A session's cache, as a command has it.
struct CacheView {
    var loaded: LoadedSettings
    var session: SessionSettings
    /// nil: nothing is on disk, because the session keeps nothing there or has not yet.
    var disk: (any CacheReading)?

    /// Why what is on disk cannot be read, where that need not be.
    var unreadable: (any Error)?
    /// Whose responses are looked up by URL; nil where the session is not split.
    var principal: String?

    /// - Parameter needsDisk: false where a running proxy may know enough.
    init(
        _ options: ConfigurationOptions, _ session: SessionOption,
        principal: PrincipalOption? = nil, needsDisk: Bool = true
    ) throws {
        let loaded = try options.load()
        let settings = try session.find(in: loaded)
        self.loaded = loaded
        self.session = settings
        let name = try principal?.principal(in: settings)
        self.principal = name
        do {
            self.disk = try loaded.cacheDirectory(of: settings).flatMap {
                try DiskCache(
                    directory: $0, session: settings, policy: loaded.policy(of: settings),
                    principal: name)
            }
        } catch {
            if needsDisk { throw error }
            self.unreadable = error
        }
    }

    /// What is on disk, for who has to do without a proxy.
    ///
    /// - Throws: why it cannot be read.
    func reading() throws -> (any CacheReading)? {
        if let unreadable { throw unreadable }
        return self.disk
    }

    /// Asks the running proxy.
    ///
    /// - Returns: false when none is running.
    func ask(
        _ request: ControlRequest, patience: Duration = .seconds(10),
        _ body: (ControlReply) throws -> Bool
    ) throws -> Bool {
        guard var client = try self.loaded.runningProxy(patience: patience) else { return false }
        try client.send(request, body)
        return true
    }

    /// Asks the running proxy, and takes one that has no listener for this session, and so knows
    /// nothing of it, for none.
    func askIfServed(
        _ request: ControlRequest, _ body: (ControlReply) throws -> Bool
    ) throws {
        do {
            _ = try self.ask(request, body)
        } catch let refusal as ControlRefusal where refusal.failure.code == .noSuchSession {}
    }
}

extension LoadedSettings {
    /// A connection with the running proxy; nil where none is running.
    func runningProxy(patience: Duration) throws(ControlError) -> ControlClient? {
        do throws(ControlError) {
            return try ControlClient(paths: self.likelyControlSockets, patience: patience)
        } catch {
            if error.code == .notRunning { return nil }
            throw error
        }
    }
}

/// Now, in microseconds since the Unix epoch.
func wallClockMicroseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
}
