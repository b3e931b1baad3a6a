import CCurl
package import LarderHTTP
import Synchronization

/// The way to origins on libcurl: http, https and ftp.
///
/// It has a loop on each of its threads, or one alone on a thread that it shares with other
/// upstreams. Each loop has connections and names of its own; all fetches from one origin go to the
/// same loop, so that they share connections and the bound on them. Receivers are called on these
/// threads and must not block them.
///
/// What it asks FTP servers for has one more loop, on a thread that does nothing else and is started
/// when it is first needed: libcurl 7.88 blocks while it waits for the reply that ends a transfer, and
/// for that to QUIT (`ftp_done`, `ftp_quit`), so a server that stands still holds up who shares the
/// thread.
package final class CurlUpstream: Upstream {
    let parents: ParentRules
    private let configuration: TransferConfiguration
    private let limits: TransferLimits
    private let ports: Mutex<Ports>
    private let isShutDown = Atomic(false)
    private let nextID = Atomic<UInt64>(1)

    private struct Ports {
        /// Empty until the first fetch where threads are shared.
        var usual: [LoopPort]
        /// nil until an FTP server is asked for something.
        var ftp: LoopPort?

        var all: [LoopPort] { self.usual + [self.ftp].compactMap { $0 } }

        /// The loop of an origin, always the same; nil where there is none yet.
        func usualPort(for uri: TargetURI) -> LoopPort? {
            guard self.usual.count > 1 else { return self.usual.first }
            var hasher = Hasher()
            hasher.combine(uri.scheme)
            hasher.combine(uri.host)
            hasher.combine(uri.port)
            let place = UInt(bitPattern: hasher.finalize()) % UInt(self.usual.count)
            return self.usual[Int(place)]
        }
    }

    /// Starts the loops; where threads are shared, they wait for the first fetch.
    ///
    /// Throws where libcurl or the kernel refuses what a loop needs, and where the file of
    /// certificates is of no use.
    ///
    /// - Parameter report: hears of a bound that was reached, once an hour at most; any thread, must not
    ///   block.
    package init(
        _ configuration: TransferConfiguration,
        report: @escaping @Sendable (TransferLimit) -> Void = { _ in }
    ) throws(TransferError) {
        let code = CurlLibrary.state
        guard code == CURLE_OK else { throw .library("curl_global_init", code) }
        if let path = configuration.certificateFile {
            do throws(CertificateFileError) {
                try CertificateFile.check(path)
            } catch {
                throw TransferError(.certificates, detail: "\(error)")
            }
        }
        let limits = TransferLimits(report)
        self.limits = limits
        self.ports = Mutex(
            Ports(
                usual: configuration.sharesThreads
                    ? [] : try Self.ownLoops(configuration, limits)))
        self.configuration = configuration
        self.parents = configuration.parents
    }

    /// On a thread that others may share, one loop of which becomes its own.
    init(_ configuration: TransferConfiguration, at entrance: GuestEntrance) throws(TransferError) {
        let code = CurlLibrary.state
        guard code == CURLE_OK else { throw .library("curl_global_init", code) }
        self.limits = TransferLimits()
        let port = LoopPort(configuration, mailbox: entrance.mailbox, entrance: entrance)
        self.ports = Mutex(Ports(usual: [port]))
        self.configuration = configuration
        self.parents = configuration.parents
    }

    var hasParents: Bool { !self.parents.rules.isEmpty }

    deinit {
        for port in self.ports.withLock({ $0.all }) { _ = port.shutDown {} }
    }

    private static func ownLoops(
        _ configuration: TransferConfiguration, _ limits: TransferLimits
    ) throws(TransferError) -> [LoopPort] {
        var ports: [LoopPort] = []
        do throws(TransferError) {
            for index in 0..<Swift.max(1, configuration.threads) {
                ports.append(try Self.ownLoop(configuration, limits, "larder-fetch-\(index % 100)"))
            }
        } catch {
            for port in ports { _ = port.shutDown {} }
            throw error
        }
        return ports
    }

    private static func ownLoop(
        _ configuration: TransferConfiguration, _ limits: TransferLimits, _ name: String
    ) throws(TransferError) -> LoopPort {
        let runner = try TransferRunner(endsWithLoop: true)
        let port = LoopPort(configuration, mailbox: runner.mailbox, limits: limits)
        try runner.open(port)
        try TransferThread.start(runner, name: name)
        return port
    }

    package func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        self.begin(request, body: body, receiver: receiver)
    }

    func begin(_ request: Request, dial: SocketDial) -> CurlFetch {
        self.begin(request, body: nil, receiver: dial, dial: dial)
    }

    private func begin(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver,
        dial: SocketDial? = nil
    ) -> CurlFetch {
        let id = self.nextID.wrappingAdd(1, ordering: .relaxed).oldValue
        do throws(TransferError) {
            let port = try self.port(for: request.uri, isDial: dial != nil)
            let fetch = CurlFetch(id: id, port: port)
            let order = FetchOrder(
                fetch: fetch, request: request, content: body, receiver: receiver, dial: dial)
            if !port.begin(order) {
                // There is no thread left to say it on.
                order.fail(
                    UpstreamFailure(
                        .proxyInternalError, party: .larder, detail: "the upstream was shut down"))
            }
            return fetch
        } catch {
            let fetch = CurlFetch(id: id, port: nil)
            FetchOrder(
                fetch: fetch, request: request, content: body, receiver: receiver, dial: dial
            ).fail(TransferLoop.internalFailure(error))
            return fetch
        }
    }

    /// Ends every fetch with a failure, closes every connection and ends the threads that are its
    /// own.
    ///
    /// - Parameter completion: called when that is done, on one of the threads, or at once on the
    ///   caller's when it was done before.
    package func shutdown(_ completion: @escaping @Sendable () -> Void) {
        self.isShutDown.store(true, ordering: .sequentiallyConsistent)
        let ports = self.ports.withLock { $0.all }
        guard !ports.isEmpty else { return completion() }
        let left = Countdown(ports.count, then: completion)
        for port in ports where !port.shutDown({ left.one() }) { left.one() }
    }

    package func statistics() -> TransferStatistics {
        var statistics = TransferStatistics()
        for port in self.ports.withLock({ $0.all }) { port.counters.add(to: &statistics) }
        return statistics
    }

    private func port(for uri: TargetURI, isDial: Bool) throws(TransferError) -> LoopPort {
        if let port = try self.ftpPort(for: uri, isDial: isDial) { return port }
        if let port = self.ports.withLock({ $0.usualPort(for: uri) }) { return port }
        // Its thread may have to be started: not under the lock.
        let entrance = try SharedTransferThreads.ofProcess.entrance()
        let fresh = LoopPort(
            self.configuration, mailbox: entrance.mailbox, entrance: entrance, limits: self.limits)
        let port = self.ports.withLock { ports in
            if let port = ports.usualPort(for: uri) { return port }
            ports.usual.append(fresh)
            return fresh
        }
        self.closeIfShutDown(port)
        return port
    }

    /// Closes a port that `shutdown` may have come too early to see.
    private func closeIfShutDown(_ port: LoopPort) {
        if self.isShutDown.load(ordering: .sequentiallyConsistent) { _ = port.shutDown {} }
    }

    /// The loop that speaks with FTP servers; nil for what is not asked of one.
    private func ftpPort(
        for uri: TargetURI, isDial: Bool
    ) throws(TransferError) -> LoopPort? {
        guard uri.scheme == .ftp, !isDial, !Way(to: uri, isDial: false, self.parents).isRelay else {
            return nil
        }
        if let port = self.ports.withLock({ $0.ftp }) { return port }
        // The others are closed then, and say so.
        if self.isShutDown.load(ordering: .sequentiallyConsistent) { return nil }
        let fresh =
            self.configuration.sharesThreads
            ? LoopPort(
                self.configuration, mailbox: try SharedTransferThreads.ofProcess.ftpMailbox(),
                limits: self.limits)
            : try Self.ownLoop(self.configuration, self.limits, "larder-ftp")
        let port = self.ports.withLock { ports in
            let port = ports.ftp ?? fresh
            ports.ftp = port
            return port
        }
        if port !== fresh { _ = fresh.shutDown {} }
        self.closeIfShutDown(port)
        return port
    }
}

/// Calls a closure when a number of things have happened.
private final class Countdown: Sendable {
    private let left: Mutex<Int>
    private let completion: @Sendable () -> Void

    init(_ count: Int, then completion: @escaping @Sendable () -> Void) {
        self.left = Mutex(count)
        self.completion = completion
    }

    func one() {
        let isLast = self.left.withLock { left in
            left -= 1
            return left == 0
        }
        if isLast { self.completion() }
    }
}
