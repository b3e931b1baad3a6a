import CCurl
import CLinux
import Glibc
import LarderHTTP

/// A libcurl multi handle and its transfers, on the epoll loop of a thread.
///
/// ```
/// a turn: commands ─▶ libcurl's timer ─▶ our deadlines ─▶ tell receivers
/// ```
///
/// Not `Sendable`: confined to the thread of its runner, with every handle, transfer and callback;
/// other threads reach it through its port.
final class TransferLoop: Timed {
    /// Commands seen to in one turn.
    private static let commandsPerTurn = 64

    let port: LoopPort
    let poller: SocketPoller
    // Freed in this order, once `tearDown` has emptied the second.
    let multi: MultiHandle
    let handles: HandlePool

    // Collections and values are taken out to be changed, here and in what belongs to a loop, and put back:
    // while a property is lent to a function, each use of it has to be checked at run time, and a transfer
    // has some seventy of those (Tests/Benchmarks/NOTES.md, Counting).
    private(set) var transfers = SmallTable<UInt64, Transfer>()
    var touched: [Transfer] = []
    /// Room for the transfers that are being settled.
    var settling: [Transfer] = []
    /// In which receivers are told.
    let round = DeliveryRound()
    let pieces: PieceBuffers
    let lastHead = LastHead()
    private let tally: TransferTally
    let deadlines: Deadlines
    /// Parents that take logins by Basic alone, as their last challenges said.
    private var basicParents: Set<String> = []
    /// For which origins parents ask for a login by Digest, as their last answers said.
    private var digestWays: Set<String> = []
    /// Of so many at most: then it begins anew.
    private static let mostDigestWays = 1024
    /// In nanoseconds; beyond it no connection would be used again.
    private let idleLifetime: UInt64
    var queue: ConnectionQueue
    var lookups: NameLookups
    /// The peer of the last request.
    let peer = PeerText()
    private var timer: MonotonicTime?
    var now = MonotonicTime.read()
    private var inbox: [TransferCommand] = []
    private var inboxNext = 0
    /// Set by `shutDown`; called when the loop is gone.
    private var completions: [@Sendable () -> Void] = []
    private(set) var isOver = false
    /// Whether it gets a turn in the next round: the runner's.
    var isDue = false
    var moment = MonotonicTime(nanoseconds: 0)
    var place: Int?
    var patience = GuestPatience()
    /// Waits until something is to be read from a socket, so many nanoseconds at most, and says whether it
    /// is; tests wait for whom they mean.
    var awaitAnswer: (Int32, Int) -> Bool = { larder_await_readable($0, $1) > 0 }
    /// When the last transfer ended.
    var idleSince = MonotonicTime.read()

    var configuration: TransferConfiguration { self.port.configuration }
    var counters: TransferCounters { self.port.counters }

    init(
        _ port: LoopPort, epoll: Epoll, pieces: PieceBuffers, tally: TransferTally
    ) throws(TransferError) {
        self.port = port
        self.pieces = pieces
        self.tally = tally
        self.poller = SocketPoller(epoll, owner: port.number, counters: port.counters)
        self.multi = try MultiHandle(port.configuration, poller: self.poller)
        self.handles = try HandlePool()
        self.deadlines = Deadlines(port.configuration)
        self.idleLifetime = port.configuration.idleConnectionLifetime.inNanoseconds
        self.queue = ConnectionQueue(limit: port.configuration.connectionsPerHost)
        self.lookups = NameLookups(
            limit: NameLookups.limit(port.configuration),
            lifetime: port.configuration.resolveTimeout)
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        try unsafe self.multi.setCallbacks(
            socket: Self.socketCallback, timer: Self.timerCallback, context: context)
    }

    // MARK: Parents

    /// Whether a parent is known to take logins by Basic alone.
    func takesBasic(_ parent: Parent) -> Bool {
        !self.basicParents.isEmpty && self.basicParents.contains(parent.authority)
    }

    func setTakesBasic(_ parent: Parent, _ takes: Bool) {
        if takes {
            self.basicParents.insert(parent.authority)
        } else {
            self.basicParents.remove(parent.authority)
        }
    }

    /// Whether a parent is known to ask requests for an origin for a login by Digest.
    ///
    /// By origin, as a parent may ask for some alone: elsewhere it would pass on the request without
    /// content that is only to be asked.
    func asksForDigest(_ parent: Parent, for uri: TargetURI) -> Bool {
        !self.digestWays.isEmpty && self.digestWays.contains(Self.way(parent, to: uri))
            && !self.takesBasic(parent)
    }

    func setAsksForDigest(_ parent: Parent, for uri: TargetURI, _ asks: Bool) {
        if asks {
            if self.digestWays.count >= Self.mostDigestWays { self.digestWays = [] }
            self.digestWays.insert(Self.way(parent, to: uri))
        } else if !self.digestWays.isEmpty {
            self.digestWays.remove(Self.way(parent, to: uri))
        }
    }

    private static func way(_ parent: Parent, to uri: TargetURI) -> String {
        "\(parent.authority) \(uri.scheme.rawValue)://\(uri.host):\(uri.port)"
    }

    // MARK: Turns

    /// Takes a command, to be seen to in a turn.
    func accept(_ command: TransferCommand) {
        var inbox = exchange(&self.inbox, with: [])
        inbox.append(command)
        self.inbox = inbox
    }

    func turn(_ now: MonotonicTime) {
        self.now = now
        self.poller.unhush()
        self.performCommands()
        self.runTimer()
        self.expire()
        self.admitLookups()
        self.settle()
        if self.isIdle, self.configuration.sharesThreads,
            now > self.idleSince.adding(self.idleLifetime)
        {
            self.isOver = true
        }
    }

    func runTimer() {
        guard let timer = self.timer, timer <= MonotonicTime.read() else { return }
        self.timer = nil
        self.check(self.multi.timedOut())
    }

    /// Whether something is left to be settled.
    var isTouched: Bool { !self.touched.isEmpty }

    /// When it wants its next turn, whatever its sockets do.
    var next: MonotonicTime? {
        if self.inboxNext < self.inbox.count || self.lookups.mayAdmit {
            return MonotonicTime(nanoseconds: 0)
        }
        var moment = self.timer
        if let next = self.lookups.next { moment = moment.map { Swift.min($0, next) } ?? next }
        if let next = self.deadlines.next { moment = moment.map { Swift.min($0, next) } ?? next }
        if moment == nil, self.isIdle, self.configuration.sharesThreads {
            moment = self.idleSince.adding(self.idleLifetime).adding(1_000_000)
        }
        return moment
    }

    /// Nothing is under way: it can be let go of, with the connections that it keeps.
    var isIdle: Bool { self.transfers.isEmpty && self.inboxNext == self.inbox.count }

    /// Sees to a socket of its own.
    func ready(_ descriptor: Int32, _ events: Int32) {
        guard self.poller.isWatched(descriptor), !self.poller.sawIdle(descriptor) else { return }
        self.check(self.multi.ready(descriptor, events))
    }

    /// Ends what is left and frees the handles.
    ///
    /// - Returns: who waits for the end; to be called when the loop itself is gone.
    func tearDown() -> [@Sendable () -> Void] {
        self.isOver = true
        while self.inboxNext < self.inbox.count { self.performCommands() }
        for (_, transfer) in self.transfers.entries {
            self.detach(transfer)
            self.forget(transfer)
            self.tellFailure(transfer.fetch, transfer.receiver, Self.shuttingDown)
            transfer.tellMeasurement()
        }
        self.touched = []
        self.handles.empty()
        // No callback may come from the freeing of the multi handle: this object is on its way out.
        try? unsafe self.multi.setCallbacks(socket: nil, timer: nil, context: nil)
        return exchange(&self.completions, with: [])
    }

    static let shuttingDown = UpstreamFailure(
        .proxyInternalError, party: .larder, detail: "shutting down")

    // MARK: Commands

    private func performCommands() {
        let end = Swift.min(self.inbox.count, self.inboxNext + Self.commandsPerTurn)
        while self.inboxNext < end {
            self.perform(self.inbox[self.inboxNext])
            self.inboxNext += 1
        }
        guard self.inboxNext == self.inbox.count else { return }
        var inbox = exchange(&self.inbox, with: [])
        inbox.removeAll(keepingCapacity: true)
        self.inbox = inbox
        self.inboxNext = 0
    }

    private func perform(_ command: TransferCommand) {
        switch command {
        case .start(let order):
            if self.isOver { order.fail(Self.shuttingDown) } else { self.begin(order) }
        case .resume(let id):
            guard let transfer = self.transfer(id) else { return }
            transfer.isPaused = false
            self.touch(transfer)
        case .contentReady(let id):
            // What libcurl has just finished cannot go on.
            self.collectCompletions()
            guard let transfer = self.transfer(id), transfer.phase != .over,
                transfer.content?.isPending == true
            else { return }
            self.unpause(transfer, sendingGoesOn: true)
        case .suspensionChanged(let id):
            if let transfer = self.transfer(id) { self.reconsider(transfer) }
        case .cancel(let id):
            // The connection of one that libcurl has just finished may bear another already.
            self.collectCompletions()
            guard let transfer = self.transfer(id) else { return }
            self.detach(transfer)
            self.forget(transfer)
            transfer.tellMeasurement()
        case .mayEndForAnother(let id):
            if let transfer = self.transfer(id) { self.offerEnd(of: transfer) }
        case .shutDown(let completion):
            self.completions = self.completions + [completion]
            self.isOver = true
        }
    }

    func begin(_ order: FetchOrder) {
        guard !order.fetch.isCancelled else { return order.cancelled() }
        self.counters.transferStarted()
        let transfer = Transfer(order, content: self.content(of: order), loop: self)
        self.setTransfer(order.fetch.id, transfer)
        if let lifetime = transfer.lifetime {
            self.deadlines.enter(lifetime, .resource, self.now - order.request.elapsed)
        }
        defer { self.touch(transfer) }
        do throws(UpstreamFailure) {
            if transfer.content == nil, order.request.bodyLength == .unknown {
                throw UpstreamFailure(
                    .proxyInternalError, party: .larder, detail: "content without a source")
            }
            let destination = ConnectionQueue.Destination(order.request.uri, transfer.way)
            transfer.destination = destination
            let mayGo = self.changeQueue {
                $0.enter(
                    order.fetch.id, for: destination, priority: transfer.options.priority,
                    mayShare: self.configuration.waitsToMultiplex && transfer.mayShareConnection,
                    client: order.receiver.client)
            }
            if mayGo { try self.launch(transfer) } else { self.awaitTurn(transfer) }
        } catch {
            transfer.end(error)
        }
    }

    /// Gives a transfer to libcurl.
    func launch(_ transfer: Transfer) throws(UpstreamFailure) {
        if transfer.measuring != nil { transfer.launched = .read() }
        let profile = OptionProfile(transfer)
        let easy: EasyHandle
        do throws(TransferError) {
            easy = try self.handles.take(for: profile)
        } catch {
            throw Self.internalFailure(error)
        }
        try easy.prepare(for: transfer, profile)
        let code = self.multi.add(easy)
        guard code == CURLM_OK else {
            throw Self.internalFailure(.library("curl_multi_add_handle", code))
        }
        transfer.easy = easy
    }

    static func internalFailure(_ error: TransferError) -> UpstreamFailure {
        UpstreamFailure(.proxyInternalError, party: .larder, detail: error.detail)
    }

    // MARK: What libcurl says

    /// Has the loop look at a transfer when libcurl has returned.
    func touch(_ transfer: Transfer) {
        guard !transfer.isTouched else { return }
        transfer.isTouched = true
        var touched = exchange(&self.touched, with: [])
        touched.append(transfer)
        self.touched = touched
    }

    /// A multi handle that fails cannot be trusted with anything further.
    func check(_ code: CURLMcode) {
        // CURLM_BAD_SOCKET: the socket was closed while its event was on the way.
        guard code != CURLM_OK, code != CURLM_BAD_SOCKET else { return }
        let failure = Self.internalFailure(.library("curl_multi_socket_action", code))
        for (_, transfer) in self.transfers.entries where transfer.easy != nil {
            self.detach(transfer)
            if transfer.phase != .over { transfer.end(failure) }
            self.touch(transfer)
        }
    }

    private static let socketCallback: ccurl_socket_callback = {
        easy, descriptor, what, context, _ in
        guard let context = unsafe context else { return 0 }
        let loop = unsafe Unmanaged<TransferLoop>.fromOpaque(context).takeUnretainedValue()
        var owner: UnsafeMutableRawPointer?
        var (isHeld, isHTTP1) = (false, false)
        if unsafe ccurl_get_pointer(easy, CURLINFO_PRIVATE, &owner) == CURLE_OK,
            let owner = unsafe owner, let transfer = unsafe EasyHandle.transfer(owner)
        {
            transfer.hasKnownSocket = true
            if what == CURL_POLL_REMOVE {
                (isHeld, isHTTP1) = (transfer.isHeld, transfer.isAnsweredInHTTP1)
                if isHeld { transfer.heldSocket = descriptor }
            }
        }
        // Never -1: libcurl 7.88 then ends every transfer, and reads through a null pointer where one
        // has no connection yet. What cannot be watched runs into its deadline.
        _ = loop.poller.watch(descriptor, what, isHeld: isHeld, isHTTP1: isHTTP1)
        return 0
    }

    private static let timerCallback: ccurl_timer_callback = { _, milliseconds, context in
        guard let context = unsafe context else { return 0 }
        let loop = unsafe Unmanaged<TransferLoop>.fromOpaque(context).takeUnretainedValue()
        switch milliseconds {
        case ..<0: loop.timer = nil
        // At once, as for each transfer that begins: the clock need not be asked.
        case 0: loop.timer = MonotonicTime(nanoseconds: 0)
        // Saturates, whatever libcurl says.
        default: loop.timer = .read() + .milliseconds(milliseconds)
        }
        return 0
    }

    // MARK: Transfers

    func transfer(_ id: UInt64) -> Transfer? {
        let transfers = self.transfers
        return transfers[id]
    }

    /// - Returns: what was there before.
    @discardableResult
    func setTransfer(_ id: UInt64, _ transfer: Transfer?) -> Transfer? {
        var transfers = exchange(&self.transfers, with: SmallTable())
        defer { self.transfers = transfers }
        guard let transfer else {
            let removed = transfers.remove(id)
            if removed != nil { self.tally.ended() }
            return removed
        }
        let replaced = transfers.update(transfer, for: id)
        if replaced == nil { self.tally.began() }
        return replaced
    }
}
