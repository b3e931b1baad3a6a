import Glibc
import LarderHTTP
import NIOCore
import Synchronization

/// Why a name led to no address.
enum NameError: Error, Equatable {
    case timedOut
    /// There is no such name, or nobody who knows.
    case notFound
    /// No thread is left to look, or no memory or descriptor.
    case exhausted
}

/// Leads names to addresses, by threads of its own.
///
/// getaddrinfo(3) waits for as long as name servers take to answer, so that one name must not stand
/// in the way of others: each has a thread, up to `threads` of them, which ends when nothing is left
/// to look for. Whoever asks for a name that is being looked for waits for the same result; clients take
/// turns (`NameQueue`).
final class NameResolver: Sendable {
    typealias Addresses = Result<[SocketAddress], NameError>
    /// Blocks until it knows; the addresses have no port.
    typealias LookUp = @Sendable (String) -> Addresses

    private struct State {
        var queue: NameQueue
        var completions: [UInt64: @Sendable (Addresses) -> Void] = [:]
        var nextWaiter: UInt64 = 0

        mutating func take(_ waiters: [UInt64]) -> [@Sendable (Addresses) -> Void] {
            waiters.compactMap { self.completions.removeValue(forKey: $0) }
        }
    }

    private let state: Mutex<State>
    private let lookUp: LookUp
    private let now: @Sendable () -> NIODeadline

    init(
        _ limits: NameQueue.Limits = NameQueue.Limits(),
        _ lookUp: @escaping LookUp = NameResolver.system,
        now: @escaping @Sendable () -> NIODeadline = { .now() }
    ) {
        self.state = Mutex(State(queue: NameQueue(limits)))
        self.now = now
        self.lookUp = lookUp
    }

    /// A name that somebody waits for.
    struct Waiting: Sendable {
        fileprivate let resolver: NameResolver
        fileprivate let name: String
        fileprivate let number: UInt64

        /// Nobody wants to know any more.
        ///
        /// - Parameter hasTimedOut: because it took too long.
        func cancel(hasTimedOut: Bool = false) {
            self.resolver.forget(self, hasTimedOut: hasTimedOut)
        }
    }

    /// How many wait for a name.
    var waiting: Int { self.state.withLock { $0.queue.waiting } }

    /// Begins to look for a name and returns at once.
    ///
    /// - Parameters:
    ///   - client: who wants to know it.
    ///   - completion: called once, on any thread and possibly before this returns; not at all where
    ///     it was cancelled first. Must not block.
    func resolve(
        _ name: String, for client: ClientSource,
        _ completion: @escaping @Sendable (Addresses) -> Void
    ) -> Waiting {
        if let addresses = Self.local(name) {
            completion(.success(addresses))
            return Waiting(resolver: self, name: name, number: 0)
        }
        let now = self.now()
        let (number, verdict) = self.state.withLock { state in
            state.nextWaiter += 1
            let number = state.nextWaiter
            let verdict = state.queue.ask(name, number, for: client, now)
            if verdict == .begin || verdict == .wait { state.completions[number] = completion }
            return (number, verdict)
        }
        switch verdict {
        case .wait: break
        case .refuse: completion(.failure(.exhausted))
        case .timedOut: completion(.failure(.timedOut))
        case .begin: self.startThread(name)
        }
        return Waiting(resolver: self, name: name, number: number)
    }

    private func forget(_ waiting: Waiting, hasTimedOut: Bool) {
        let now = self.now()
        self.state.withLock { state in
            guard state.completions.removeValue(forKey: waiting.number) != nil else { return }
            state.queue.leave(waiting.name, waiting.number, hasTimedOut: hasTimedOut, now)
        }
    }

    // MARK: Threads

    /// Looks for a name, and then for those that have waited for a thread meanwhile.
    private func work(_ first: String) {
        var next: String? = first
        while let name = next {
            let result = self.lookUp(name)
            let now = self.now()
            let isFound = if case .success = result { true } else { false }
            let (completions, names) = self.state.withLock { state in
                let ending = state.queue.ended(name, isFound: isFound, now)
                return (state.take(ending.waiters), ending.next)
            }
            for completion in completions { completion(result) }
            next = names.first
            for name in names.dropFirst() { self.startThread(name) }
        }
    }

    private func startThread(_ name: String) {
        do throws(NamedThread.Failure) {
            try NamedThread.start("larder-names") { self.work(name) }
        } catch {
            let completions = self.state.withLock { state in
                state.take(state.queue.threadFailed(name))
            }
            for completion in completions { completion(.failure(.exhausted)) }
        }
    }
}

extension NameResolver {
    /// The addresses of a name that no name server is asked for: `localhost` and what lies below it
    /// (RFC 6761 §6.3); nil for any other.
    static func local(_ name: String) -> [SocketAddress]? {
        guard name.isLocalhost else { return nil }
        return ["::1", "127.0.0.1"].compactMap { try? SocketAddress(ipAddress: $0, port: 0) }
    }
}

extension NameResolver {
    /// Asks the system, in the order of RFC 6724; the one place that knows the codes of getaddrinfo(3).
    static let system: LookUp = { name in
        var hints = unsafe addrinfo()
        unsafe hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(name, nil, &hints, &list)
        switch code {
        case 0: break
        case EAI_MEMORY, EAI_SYSTEM: return .failure(.exhausted)
        default: return .failure(.notFound)
        }
        defer { unsafe freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = unsafe list
        while let entry = unsafe next {
            if let address = unsafe NameResolver.address(of: entry.pointee, name) {
                addresses.append(address)
            }
            unsafe next = entry.pointee.ai_next
        }
        return addresses.isEmpty ? .failure(.notFound) : .success(addresses)
    }

    private static func address(of entry: addrinfo, _ name: String) -> SocketAddress? {
        guard let bytes = unsafe UnsafeRawPointer(entry.ai_addr) else { return nil }
        return switch unsafe entry.ai_family {
        case AF_INET: unsafe SocketAddress(bytes.load(as: sockaddr_in.self), host: name)
        case AF_INET6: unsafe SocketAddress(bytes.load(as: sockaddr_in6.self), host: name)
        default: nil
        }
    }
}
