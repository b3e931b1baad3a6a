import LarderHTTP
import LarderSession
import NIOCore
import NIOPosix
import Synchronization

/// A connection to an origin that is being made, as something that can be given up at any moment.
///
/// ```
/// resolving ──▶ connecting ──▶ connected | failed     (completion)
///     └─────────────┴────────▶ cancelled
/// ```
///
/// An address is connected to at once; of a name, all addresses that nobody objects to are tried in
/// turn by NIO (RFC 8305). To the others no packet goes, or the answer would tell whether somebody
/// listens there. Each step has a time of its own.
final class DirectDial: Exchange {
    /// How a dial ends that was not cancelled.
    enum Ending {
        case connected(any Channel)
        case failed(ExchangeFailure)
        /// The host leads only to addresses that may not be connected to.
        case refused(OwnAnswer)
    }

    typealias Completion = (Ending) -> Void
    /// Why an address may not be connected to; nil where it may.
    typealias Objection = (SocketAddress) -> OwnAnswer?

    private struct State {
        /// Nil once it was called, or the dial was cancelled.
        var completion: NIOLoopBound<Completion>?
        var name: NameResolver.Waiting?
        var deadline: Scheduled<Void>?
        /// All that were begun: several at a time where a name has several addresses.
        var channels: [any Channel] = []
    }

    private let state: Mutex<State>
    private let loop: any EventLoop

    /// - Parameter completion: called once, on the loop, and not at all after `cancel`.
    init(on loop: any EventLoop, completion: @escaping Completion) {
        self.loop = loop
        self.state = Mutex(State(completion: NIOLoopBound(completion, eventLoop: loop)))
    }

    /// - Parameters:
    ///   - host: a name or an address, without brackets.
    ///   - client: for whom.
    ///   - time: how long a name may take to be resolved, the wait for its turn included.
    ///   - bootstrap: has `admit` called with each channel.
    ///   - objection: asked of each address before it is connected to, on the loop; what it says of
    ///     the first one is the ending where there is none without.
    func begin(
        host: String, port: UInt16, resolver: NameResolver, for client: ClientSource,
        within time: Duration, bootstrap: ClientBootstrap, objection: @escaping Objection
    ) {
        if let address = try? SocketAddress(ipAddress: host, port: Int(port)) {
            if let refusal = objection(address) { return self.ended(.refused(refusal)) }
            return self.connect(bootstrap.connect(to: address))
        }
        let bound = NIOLoopBound((bootstrap, objection), eventLoop: self.loop)
        let resolved = { @Sendable (result: NameResolver.Addresses) in
            guard self.nameEnded(hasTimedOut: result == .failure(.timedOut)) else { return }
            let (bootstrap, objection) = bound.value
            switch result {
            case .success(let addresses):
                let known = KnownAddresses(
                    addresses, port: port, loop: self.loop, objection: objection)
                if let refusal = known.refusal { return self.ended(.refused(refusal)) }
                self.connect(bootstrap.resolver(known).connect(host: host, port: Int(port)))
            case .failure(let error):
                self.ended(.failed(DialError.failure(of: error)))
            }
        }
        let deadline = self.loop.scheduleTask(in: .nanoseconds(time.inNanoseconds)) {
            resolved(.failure(.timedOut))
        }
        self.state.withLock { $0.deadline = deadline }
        let name = resolver.resolve(host, for: client) { result in
            self.loop.execute { resolved(result) }
        }
        self.state.withLock { $0.name = name }
    }

    /// Notes a channel that is about to connect.
    ///
    /// - Throws: where nobody wants it any more.
    func admit(_ channel: any Channel) throws(ChannelError) {
        let isWanted = self.state.withLock { state -> Bool in
            state.channels.append(channel)
            return state.completion != nil
        }
        if !isWanted { throw ChannelError.alreadyClosed }
    }

    func cancel() {
        let (name, deadline, channels) = self.state.withLock { state in
            state.completion = nil
            return (state.name.take(), state.deadline.take(), state.channels)
        }
        deadline?.cancel()
        name?.cancel()
        for channel in channels { channel.close(promise: nil) }
    }

    /// - Returns: whether it was still waited for.
    private func nameEnded(hasTimedOut: Bool) -> Bool {
        let (name, deadline, isWanted) = self.state.withLock { state in
            let deadline = state.deadline.take()
            return (state.name.take(), deadline, state.completion != nil && deadline != nil)
        }
        deadline?.cancel()
        name?.cancel(hasTimedOut: hasTimedOut)
        return isWanted
    }

    private func connect(_ channel: EventLoopFuture<any Channel>) {
        channel.whenComplete { result in
            switch result {
            case .success(let channel): self.ended(.connected(channel))
            case .failure(let error): self.ended(.failed(DialError.failure(of: error)))
            }
        }
    }

    private func ended(_ ending: Ending) {
        let completion = self.state.withLock { state in
            state.channels = []
            return state.completion.take()
        }
        guard let completion else {
            if case .connected(let channel) = ending { channel.close(promise: nil) }
            return
        }
        completion.value(ending)
    }
}

/// What a name led to and may be connected to, for NIO to connect to one after the other.
private final class KnownAddresses: Resolver, Sendable {
    private let v4: EventLoopFuture<[SocketAddress]>
    private let v6: EventLoopFuture<[SocketAddress]>
    /// Why nothing is left; nil where something is.
    let refusal: OwnAnswer?

    init(
        _ addresses: [SocketAddress], port: UInt16, loop: any EventLoop,
        objection: DirectDial.Objection
    ) {
        var (v4, v6) = ([SocketAddress](), [SocketAddress]())
        var refusal: OwnAnswer?
        for var address in addresses {
            address.port = Int(port)
            if let answer = objection(address) {
                refusal = refusal ?? answer
            } else if case .v6 = address {
                v6.append(address)
            } else {
                v4.append(address)
            }
        }
        self.refusal = v4.isEmpty && v6.isEmpty ? refusal : nil
        self.v4 = loop.makeSucceededFuture(v4)
        self.v6 = loop.makeSucceededFuture(v6)
    }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { self.v4 }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { self.v6 }

    func cancelQueries() {}
}
