import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// What a listener does about an error of accept(2): the one place that knows its codes.
enum AcceptFailure: Equatable {
    /// Nothing is left to make a connection of: it stays in the kernel's queue.
    case exhausted
    /// That client has gone already.
    case passing
    /// NIO closes the listener.
    case fatal

    init(_ error: any Error) {
        guard let error = error as? IOError else {
            self = .fatal
            return
        }
        switch error.errnoCode {
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: self = .exhausted
        case ECONNABORTED: self = .passing
        default: self = .fatal
        }
    }
}

/// How often nothing could be accepted, or nothing was, and whether that is to be said.
struct AcceptTrouble {
    private(set) var count: UInt64 = 0
    private var saidAt: NIODeadline?

    static let silence = TimeAmount.hours(1)

    /// - Returns: whether it was not said for an hour.
    mutating func failed(at now: NIODeadline) -> Bool {
        self.count &+= 1
        if let said = self.saidAt, now < said + Self.silence { return false }
        self.saidAt = now
        return true
    }
}
