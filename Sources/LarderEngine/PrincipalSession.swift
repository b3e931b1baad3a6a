import LarderCredentials
package import LarderHTTP
package import LarderPolicy
package import LarderSession
import Synchronization

/// One principal's part of a session: a partition of the cache, cookies and credentials of its own.
///
/// ```
/// opening ─▶ open (exchanges)
/// ```
///
/// What it kept from before is read while it opens; exchanges that come meanwhile wait for that.
package final class PrincipalSession: ExchangeSession {
    /// "" where a session is not split, and for what belongs to all of it.
    package let principal: String
    package let session: Session
    /// nil: cookies are the clients' business.
    package let cookies: SessionCookies?
    package let credentials: SessionCredentials
    /// Keeps its transfers; nil: they end with their clients.
    private let desk: TransferDesk?

    private let isOpen = Atomic(false)
    private let waiting = Mutex<[WaitingExchange]>([])

    init(
        principal: String, session: Session, cookies: SessionCookies?,
        credentials: SessionCredentials, desk: TransferDesk? = nil
    ) {
        self.desk = desk
        self.principal = principal
        self.session = session
        self.cookies = cookies
        self.credentials = credentials
    }

    package var cachePolicy: RequestCachePolicy { self.session.cachePolicy }
    package var dialer: (any TunnelDialer)? { self.session.dialer }
    package var keepsTransfers: Bool { self.desk != nil }

    package func mustPerform(_ request: Request) -> Bool { self.session.mustPerform(request) }

    package func perform(
        _ request: Request, body: (any BodySource)?, options: ExchangeOptions,
        client: any ExchangeClient
    ) -> any Exchange {
        var options = options
        if let desk = self.desk, let requester = options.requester {
            options.owner = desk.owner(of: request, by: requester, in: self)
        }
        if !self.isOpen.load(ordering: .acquiring) {
            let exchange = WaitingExchange { [session, options] in
                session.perform(request, body: body, options: options, client: client)
            }
            let waits = self.waiting.withLock { waiting in
                // It may have opened since.
                guard !self.isOpen.load(ordering: .acquiring) else { return false }
                waiting.append(exchange)
                return true
            }
            if waits { return exchange }
        }
        return self.session.perform(request, body: body, options: options, client: client)
    }

    package func again(
        _ standing: StandingAnswer, cachePolicy: RequestCachePolicy?
    ) -> StandingAnswer.Repetition? {
        guard self.isOpen.load(ordering: .acquiring) else { return nil }
        return self.session.again(standing, cachePolicy: cachePolicy)
    }

    /// What would be lost if it were let go now.
    var residue: Residue {
        if self.session.isBusy { return .underWay }
        return max(self.cookies?.residue ?? .nothing, self.credentials.residue)
    }

    /// Reads what was kept, and lets the exchanges begin that wait for it.
    func open(at now: Timestamp) async {
        await self.cookies?.restore(at: now)
        await self.credentials.load()
        self.begin()
    }

    /// Lets exchanges begin: there is nothing to read.
    func begin() {
        let waiting = self.waiting.withLock { waiting in
            self.isOpen.store(true, ordering: .releasing)
            defer { waiting = [] }
            return waiting
        }
        for exchange in waiting { exchange.begin() }
    }

    /// Returns once what was kept has been read.
    package func opened() async {
        await withCheckedContinuation { continuation in
            let waits = self.waiting.withLock { waiting in
                guard !self.isOpen.load(ordering: .acquiring) else { return false }
                waiting.append(
                    WaitingExchange {
                        continuation.resume()
                        return NoExchange()
                    })
                return true
            }
            if !waits { continuation.resume() }
        }
    }

    /// Drops what does not outlive the process, and returns when the rest is kept.
    ///
    /// What is still being read comes first: it would else find its storage closed.
    func endSession() async {
        await self.opened()
        // What could not be kept was reported when that began, and is tried once more.
        try? await self.cookies?.endSession()
        await self.credentials.save()
    }
}

/// An exchange that begins once its session has read what it kept.
///
///     waiting → begun
///        └────→ cancelled
private final class WaitingExchange: Exchange {
    private enum State {
        case waiting(@Sendable () -> any Exchange)
        case beginning
        case begun(any Exchange)
        case cancelled
    }

    private let state: Mutex<State>

    init(_ perform: @escaping @Sendable () -> any Exchange) {
        self.state = Mutex(.waiting(perform))
    }

    func begin() {
        let perform = self.state.withLock { state -> (@Sendable () -> any Exchange)? in
            guard case .waiting(let perform) = state else { return nil }
            state = .beginning
            return perform
        }
        guard let exchange = perform?() else { return }
        let isCancelled = self.state.withLock { state in
            if case .cancelled = state { return true }
            state = .begun(exchange)
            return false
        }
        if isCancelled { exchange.cancel() }
    }

    func cancel() {
        let begun = self.state.withLock { state -> (any Exchange)? in
            defer { state = .cancelled }
            guard case .begun(let exchange) = state else { return nil }
            return exchange
        }
        begun?.cancel()
    }
}

/// Stands for an exchange where somebody only waits.
private final class NoExchange: Exchange {
    func cancel() {}
}
