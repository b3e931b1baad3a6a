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
/// to look for. Whoever asks for a name that is being looked for waits for the same result.
final class NameResolver: Sendable {
    typealias Addresses = Result<[SocketAddress], NameError>
    /// Blocks until it knows; the addresses have no port.
    typealias LookUp = @Sendable (String) -> Addresses

    private struct Asked {
        var waiters: [UInt64: @Sendable (Addresses) -> Void]
        /// A thread is at work on it.
        var isBegun: Bool
    }

    private struct State {
        var names: [String: Asked] = [:]
        /// Names that wait for a thread.
        var queue: [String] = []
        var threads = 0
        var nextWaiter: UInt64 = 0
    }

    private let state = Mutex(State())
    private let lookUp: LookUp
    private let threads: Int
    private let queued: Int

    /// - Parameters:
    ///   - threads: look-ups at one time.
    ///   - queued: names that may wait for a thread.
    init(
        threads: Int = 64, queued: Int = 1_024, _ lookUp: @escaping LookUp = NameResolver.system
    ) {
        self.threads = threads
        self.queued = queued
        self.lookUp = lookUp
    }

    /// A name that somebody waits for.
    struct Waiting: Sendable {
        fileprivate let resolver: NameResolver
        fileprivate let name: String
        fileprivate let number: UInt64

        /// Nobody wants to know any more.
        func cancel() { self.resolver.forget(self) }
    }

    /// How many wait for a name.
    var waiting: Int { self.state.withLock { $0.names.values.reduce(0) { $0 + $1.waiters.count } } }

    /// Begins to look for a name and returns at once.
    ///
    /// - Parameter completion: called once, on any thread and possibly before this returns; not at
    ///   all where it was cancelled first. Must not block.
    func resolve(
        _ name: String, _ completion: @escaping @Sendable (Addresses) -> Void
    ) -> Waiting {
        let (number, step) = self.state.withLock { state in
            state.nextWaiter += 1
            return (state.nextWaiter, self.ask(name, state.nextWaiter, completion, &state))
        }
        switch step {
        case .wait: break
        case .refuse: completion(.failure(.exhausted))
        case .begin: self.startThread(name)
        }
        return Waiting(resolver: self, name: name, number: number)
    }

    private enum Step { case wait, begin, refuse }

    private func ask(
        _ name: String, _ number: UInt64, _ completion: @escaping @Sendable (Addresses) -> Void,
        _ state: inout State
    ) -> Step {
        if state.names[name] != nil {
            state.names[name]?.waiters[number] = completion
            return .wait
        }
        let hasThread = state.threads < self.threads
        guard hasThread || state.queue.count < self.queued else { return .refuse }
        state.names[name] = Asked(waiters: [number: completion], isBegun: hasThread)
        if hasThread {
            state.threads += 1
            return .begin
        }
        state.queue.append(name)
        return .wait
    }

    private func forget(_ waiting: Waiting) {
        self.state.withLock { state in
            guard let asked = state.names[waiting.name] else { return }
            state.names[waiting.name]?.waiters[waiting.number] = nil
            // One that is being looked for goes on: whoever asks next may have use for it.
            guard !asked.isBegun, asked.waiters.keys.allSatisfy({ $0 == waiting.number }) else {
                return
            }
            state.names[waiting.name] = nil
            state.queue.removeAll { $0 == waiting.name }
        }
    }

    // MARK: Threads

    /// Looks for a name, and then for those that have waited for a thread meanwhile.
    private func work(_ first: String) {
        var next: String? = first
        while let name = next {
            let result = self.lookUp(name)
            let waiters: [@Sendable (Addresses) -> Void]
            (waiters, next) = self.state.withLock { state in Self.found(name, &state) }
            for completion in waiters { completion(result) }
        }
    }

    /// - Returns: who waited for the name, and the next one to be looked for.
    private static func found(
        _ name: String, _ state: inout State
    ) -> ([@Sendable (Addresses) -> Void], String?) {
        let waiters = state.names.removeValue(forKey: name)?.waiters.values.map { $0 } ?? []
        guard !state.queue.isEmpty else {
            state.threads -= 1
            return (waiters, nil)
        }
        let next = state.queue.removeFirst()
        state.names[next]?.isBegun = true
        return (waiters, next)
    }

    private func startThread(_ name: String) {
        do throws(NamedThread.Failure) {
            try NamedThread.start("larder-names") { self.work(name) }
        } catch {
            self.threadFailed(name)
        }
    }

    /// There is no thread for a name: those that run go on with what waits for them.
    private func threadFailed(_ name: String) {
        let waiters = self.state.withLock { state in
            state.threads -= 1
            // Without a thread nobody comes for those in the queue, either.
            let names = [name] + (state.threads == 0 ? state.queue : [])
            if state.threads == 0 { state.queue = [] }
            return names.flatMap {
                state.names.removeValue(forKey: $0)?.waiters.values.map { $0 } ?? []
            }
        }
        for completion in waiters { completion(.failure(.exhausted)) }
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
