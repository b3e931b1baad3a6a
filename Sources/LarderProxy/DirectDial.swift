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
/// An address is connected to at once; of a name, all addresses are tried in turn by NIO (RFC 8305).
/// Each step has a time of its own.
final class DirectDial: Exchange {
    typealias Completion = (Result<any Channel, ExchangeFailure>) -> Void

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
    ///   - time: how long a name may take to be resolved.
    ///   - bootstrap: has `admit` called with each channel.
    func begin(
        host: String, port: UInt16, resolver: NameResolver, within time: Duration,
        bootstrap: ClientBootstrap
    ) {
        if let address = try? SocketAddress(ipAddress: host, port: Int(port)) {
            self.connect(bootstrap.connect(to: address))
            return
        }
        let bound = NIOLoopBound(bootstrap, eventLoop: self.loop)
        let resolved = { @Sendable (result: NameResolver.Addresses) in
            guard self.nameEnded() else { return }
            switch result {
            case .success(let addresses):
                let known = KnownAddresses(addresses, port: port, loop: self.loop)
                self.connect(bound.value.resolver(known).connect(host: host, port: Int(port)))
            case .failure(let error):
                self.ended(.failure(error))
            }
        }
        let deadline = self.loop.scheduleTask(in: .nanoseconds(time.inNanoseconds)) {
            resolved(.failure(.timedOut))
        }
        self.state.withLock { $0.deadline = deadline }
        let name = resolver.resolve(host) { result in self.loop.execute { resolved(result) } }
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
    private func nameEnded() -> Bool {
        let (name, deadline, isWanted) = self.state.withLock { state in
            let deadline = state.deadline.take()
            return (state.name.take(), deadline, state.completion != nil && deadline != nil)
        }
        deadline?.cancel()
        name?.cancel()
        return isWanted
    }

    private func connect(_ channel: EventLoopFuture<any Channel>) {
        channel.whenComplete { self.ended($0) }
    }

    private func ended(_ result: Result<any Channel, any Error>) {
        let completion = self.state.withLock { state in
            state.channels = []
            return state.completion.take()
        }
        guard let completion else {
            if case .success(let channel) = result { channel.close(promise: nil) }
            return
        }
        completion.value(result.mapError { DialError.failure(of: $0) })
    }
}

/// What a name led to, for NIO to connect to one after the other.
private final class KnownAddresses: Resolver, Sendable {
    private let v4: EventLoopFuture<[SocketAddress]>
    private let v6: EventLoopFuture<[SocketAddress]>

    init(_ addresses: [SocketAddress], port: UInt16, loop: any EventLoop) {
        var (v4, v6) = ([SocketAddress](), [SocketAddress]())
        for var address in addresses {
            address.port = Int(port)
            if case .v6 = address { v6.append(address) } else { v4.append(address) }
        }
        self.v4 = loop.makeSucceededFuture(v4)
        self.v6 = loop.makeSucceededFuture(v6)
    }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { self.v4 }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> { self.v6 }

    func cancelQueries() {}
}
