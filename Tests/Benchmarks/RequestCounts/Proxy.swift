import Foundation
import LarderDisk
import LarderHTTP
import LarderProxy
import LarderSession
import LarderStore
import LarderTransfer
import NIOPosix

/// A whole proxy in this process: one loop, one thread to origins, both tiers.
///
/// It is put together as the daemon does, without what only a daemon has: settings, log files and
/// the control socket.
struct Proxy {
    let port: UInt16
    let disk: DiskStore

    private let server: ProxyServer
    private let upstream: CurlUpstream
    private let store: TieredStore

    struct Unusable: Error {}

    /// - Parameter memory: the capacity of the memory tier.
    static func start(in directory: URL, memory: ByteCount) async throws -> Proxy {
        let clock = SystemClock()
        let disk = try DiskStore.open(
            DiskConfiguration(directory: directory.path, capacity: .gibibytes(1)),
            clock: { clock.now() }, report: { _ in })
        let store = TieredStore(
            memory: MemoryStore(MemoryConfiguration(capacity: memory)), disk: disk)
        let upstream = try CurlUpstream(TransferConfiguration())
        let session = Session(
            configuration: SessionConfiguration(), store: store, upstream: upstream, clock: clock,
            timers: DispatchTimers())
        let server = ProxyServer(
            group: MultiThreadedEventLoopGroup(numberOfThreads: 1),
            configuration: ProxyConfiguration(), clock: { clock.now() })
        let address = try await server.listen(
            on: .tcp(host: "127.0.0.1", port: 0), directory: OneSessionDirectory(session))
        guard case .tcp(_, let port) = address else { throw Unusable() }
        return Proxy(
            port: port, disk: disk, server: server, upstream: upstream, store: store)
    }

    /// Waits until all that was stored is in the file.
    func flush() async {
        await withCheckedContinuation { continuation in
            self.disk.flush { continuation.resume() }
        }
    }

    func stop() async {
        await self.server.drain(within: .zero)
        await withCheckedContinuation { continuation in
            self.upstream.shutdown { continuation.resume() }
        }
        await withCheckedContinuation { continuation in
            self.store.close { continuation.resume() }
        }
    }
}
