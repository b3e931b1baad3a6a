import ArgumentParser
import Glibc
import LarderConfig
import LarderDaemon

/// The verb `larder run -- COMMAND…`.
struct Run: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run one command behind a proxy of its own.",
        discussion: """
            The proxy listens on a free port of loopback and ends with the command, whose environment \
            leads to it. With --session ephemeral nothing of it is ever written to a disk. Where the \
            access rules of the configuration let no client of loopback in, the command may go \
            wherever they do not deny it to everybody.

            One process writes to a cache: beside a proxy that has this one open already it caches in memory \
            alone, and finds nothing in the next run. To use that proxy's cache, let http_proxy lead to it.

            Where the configuration names no parents, the proxy goes on by the proxies that http_proxy, \
            https_proxy, ftp_proxy and all_proxy name, but to the hosts of no_proxy. The command keeps \
            those of its no_proxy, without this machine's own names and addresses (localhost, \
            127.0.0.1, *), which would keep it off the proxy.
            """)

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var sessions: SessionOption

    @Flag(help: "Do not print the summary.")
    var quiet = false

    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("The command and its arguments.", valueName: "command"),
        completion: .file())
    var command: [String] = []

    func run() async throws {
        guard !self.command.isEmpty else {
            throw CommandFailure(
                .usage, "no command is given", remedy: "write \"larder run -- COMMAND\"")
        }
        let descriptors = OpenDescriptors()
        let signals = InheritedSignals()
        let loaded = try self.options.load()
        let session = try self.sessions.find(in: loaded)
        let command = Self.command(self.command, asIn: OwnStart.arguments)
        let entries = OwnStart.environment
        do {
            let (ending, summary) = try await Daemon.withProxy(
                loaded, session: session.name, entries: entries
            ) {
                let environment = Self.environment(entries, proxy: $0)
                descriptors.keepFromChildren()
                return try await ChildProcess.run(
                    command, environment: environment, ignoring: signals)
            }
            if !self.quiet { Output.note("larder: \(Self.text(summary))") }
            if ending.exitStatus != 0 { throw ExitCode(ending.exitStatus) }
        } catch let error as StartFailure {
            Output.failure(error.failure)
            throw ExitCode(error.exitStatus)
        }
    }

    /// The environment that leads a program to the proxy.
    ///
    /// Both cases, because programs differ in which they read; and no exceptions for loopback, which
    /// many systems set, because they would lead past it.
    ///
    /// - Parameter entries: `NAME=VALUE`; all others go on as they are, and so do the exceptions that
    ///   stay.
    static func environment(_ entries: [[UInt8]], proxy: TemporaryProxy) -> [[UInt8]] {
        let url = Array(proxy.url.utf8)
        let exceptions = Array(proxy.exceptions.joined(separator: [UInt8(ascii: ",")]))
        var own: [(name: String, value: [UInt8])] = []
        for name in ["http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"] {
            let value = name == "no_proxy" ? exceptions : url
            own.append((name, value))
            own.append((name.uppercased(), value))
        }
        let names = Set(own.map { Array($0.name.utf8) })
        let others = entries.filter { entry in
            !names.contains(Array(entry.prefix { $0 != UInt8(ascii: "=") }))
        }
        let added: [[UInt8]] = own.map { Array("\($0.name)=".utf8) + $0.value }
        return others + added
    }

    /// The command as it was given: texts have something else in the place of what is not UTF-8.
    ///
    /// - Parameters:
    ///   - words: what was found behind the two dashes.
    ///   - arguments: all that the process was started with.
    static func command(_ words: [String], asIn arguments: [[UInt8]]) -> [[UInt8]] {
        let dashes = Array("--".utf8)
        let given = arguments.drop { $0 != dashes }.dropFirst()
        guard given.map({ String(decoding: $0, as: UTF8.self) }) == words else {
            return words.map { Array($0.utf8) }
        }
        return Array(given)
    }

    /// What the proxy did, in a line.
    ///
    /// `12 requests: 10 hits, 2 missed; 3.4 MiB of 5 MiB saved`
    static func text(_ summary: ProxySummary) -> String {
        guard summary.requests > 0 else {
            return summary.refused > 0
                ? "no requests but \(summary.refused) that the access rules refused" : "no requests"
        }
        var parts = ["\(Human.count(summary.hits, "hit")), \(summary.misses) missed"]
        if summary.collapsed > 0 { parts.append("\(summary.collapsed) collapsed") }
        if summary.tunnels > 0 { parts.append("\(Human.count(summary.tunnels, "tunnel")) opened") }
        if summary.failures > 0 { parts.append("\(summary.failures) failed") }
        if summary.refused > 0 { parts.append("\(summary.refused) refused") }
        return "\(Human.count(summary.requests, "request")): \(parts.joined(separator: ", ")); "
            + "\(Human.size(summary.bytesSaved)) of \(Human.size(summary.bytesServed)) saved"
    }
}
