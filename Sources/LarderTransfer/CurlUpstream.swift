import CCurl
package import LarderHTTP
import Synchronization

/// The way to origins on libcurl: http, https and ftp.
///
/// Each loop has a thread, connections and names of its own; all fetches from one origin go to the
/// same loop, so that they share connections and the bound on them. Receivers are called on these
/// threads and must not block them.
package final class CurlUpstream: Upstream {
    private struct Lane: Sendable {
        let mailbox: TransferMailbox
        let counters: TransferCounters
    }

    let parents: ParentRules
    private let lanes: [Lane]
    private let nextID = Atomic<UInt64>(1)

    /// Starts the loops.
    ///
    /// Throws where libcurl or the kernel refuses what a loop needs.
    package init(_ configuration: TransferConfiguration) throws(TransferError) {
        let code = Self.globalState
        guard code == CURLE_OK else { throw .library("curl_global_init", code) }
        var lanes: [Lane] = []
        do throws(TransferError) {
            for index in 0..<Swift.max(1, configuration.threads) {
                let lane = Lane(mailbox: try TransferMailbox(), counters: TransferCounters())
                let loop = try TransferLoop(
                    configuration, mailbox: lane.mailbox, counters: lane.counters)
                try TransferThread.start(loop, index: index)
                lanes.append(lane)
            }
        } catch {
            for lane in lanes { _ = lane.mailbox.post(.shutDown({})) }
            throw error
        }
        self.lanes = lanes
        self.parents = configuration.parents
    }

    var hasParents: Bool { !self.parents.rules.isEmpty }

    deinit {
        for lane in self.lanes { _ = lane.mailbox.post(.shutDown({})) }
    }

    /// Once in a process, before any thread uses libcurl (curl_global_init(3)).
    private static let globalState = curl_global_init(ccurl_global_all)

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
        let lane = self.lane(for: request.uri)
        let id = self.nextID.wrappingAdd(1, ordering: .relaxed).oldValue
        let fetch = CurlFetch(id: id, mailbox: lane.mailbox)
        let order = FetchOrder(
            fetch: fetch, request: request, content: body, receiver: receiver, dial: dial)
        if !lane.mailbox.post(.start(order)) {
            body?.cancel()
            // There is no thread left to say it on.
            receiver.upstream(
                failed: UpstreamFailure(
                    .proxyInternalError, party: .larder, detail: "the upstream was shut down"))
        }
        return fetch
    }

    /// Ends every fetch with a failure, closes every connection and ends the threads.
    ///
    /// - Parameter completion: called when that is done, on one of the threads that end, or at once
    ///   on the caller's when it was done before.
    package func shutdown(_ completion: @escaping @Sendable () -> Void) {
        let left = Countdown(self.lanes.count, then: completion)
        for lane in self.lanes where !lane.mailbox.post(.shutDown({ left.one() })) { left.one() }
    }

    package func statistics() -> TransferStatistics {
        var statistics = TransferStatistics()
        for lane in self.lanes { lane.counters.add(to: &statistics) }
        return statistics
    }

    private func lane(for uri: TargetURI) -> Lane {
        guard self.lanes.count > 1 else { return self.lanes[0] }
        var hasher = Hasher()
        hasher.combine(uri.scheme)
        hasher.combine(uri.host)
        hasher.combine(uri.port)
        return self.lanes[Int(UInt(bitPattern: hasher.finalize()) % UInt(self.lanes.count))]
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
