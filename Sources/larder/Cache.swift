import ArgumentParser
import Glibc
import LarderConfig
import LarderControl

/// The verb `larder cache …`.
struct Cache: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Look into the cache, and remove from it.",
        discussion: """
            Reads the cache's file itself, whether a proxy runs or not; what only the running proxy \
            knows it asks through the control socket.
            """,
        subcommands: [CacheList.self, CacheShow.self, CacheStats.self, CachePurge.self])
}

/// A session's cache, as a command has it.
struct CacheView {
    var loaded: LoadedSettings
    var session: SessionSettings
    /// nil: nothing is on disk, because the session keeps nothing there or has not yet.
    var disk: (any CacheReading)?

    init(_ options: ConfigurationOptions, _ session: SessionOption) throws {
        self.loaded = try options.load()
        self.session = try session.find(in: self.loaded)
        self.disk = try self.loaded.cacheDirectory(of: self.session).flatMap { directory in
            try CacheReader.open(
                directory: directory, session: self.session, loaded: self.loaded)
        }
    }

    /// Asks the running proxy.
    ///
    /// - Returns: false when none is running.
    func ask(
        _ request: ControlRequest, patience: Duration = .seconds(10),
        _ body: (ControlReply) throws -> Bool
    ) throws -> Bool {
        var client: ControlClient
        do throws(ControlError) {
            client = try ControlClient(paths: self.loaded.controlSockets, patience: patience)
        } catch {
            if error.code == .notRunning { return false }
            throw error
        }
        try client.send(request, body)
        return true
    }
}

/// Now, in microseconds since the Unix epoch.
func wallClockMicroseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
}
