import LarderHTTP
import LarderSession
import NIOCore
import NIOPosix

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Reads what NIO says when it cannot connect: the one place that knows its errors.
enum DialError {
    static func failure(of error: any Error) -> ExchangeFailure {
        if let error = error as? NIOConnectionError { return self.failure(of: error) }
        if let error = error as? ChannelError, case .connectTimeout = error {
            return self.timeout
        }
        if let error = error as? NameError { return self.failure(of: error) }
        if let error = error as? IOError { return self.failure(errno: error.errnoCode) }
        return .tunnel(503, .destinationUnavailable, "the origin cannot be reached")
    }

    private static let timeout = ExchangeFailure.tunnel(
        504, .connectionTimeout, "connecting to the origin took too long")
    private static let exhausted = ExchangeFailure(
        status: .serviceUnavailable,
        error: .connectionLimitReached,
        detail: "no further connections are possible", party: .larder,
        cacheStatus: CacheStatus(forward: .bypass))

    /// RFC 9209 §2.3.1, §2.3.2.
    private static func failure(of error: NameError) -> ExchangeFailure {
        switch error {
        case .timedOut: .tunnel(504, .dnsTimeout, "the origin's name was not resolved in time")
        case .notFound: .tunnel(502, .dnsError, "the origin's name cannot be resolved")
        case .exhausted: self.exhausted
        }
    }

    /// Several addresses were tried: the last failure stands for all, a refusal before others.
    private static func failure(of error: NIOConnectionError) -> ExchangeFailure {
        let failures = error.connectionErrors.map { self.failure(of: $0.error) }
        let refusal = failures.first { $0.error == .connectionRefused }
        return refusal ?? failures.last ?? self.timeout
    }

    private static func failure(errno code: CInt) -> ExchangeFailure {
        switch code {
        case ECONNREFUSED:
            .tunnel(502, .connectionRefused, "the origin refused the connection")
        case ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, EAFNOSUPPORT:
            .tunnel(502, .destinationIPUnroutable, "no route to the origin")
        case ETIMEDOUT:
            self.timeout
        case EMFILE, ENFILE, ENOBUFS, ENOMEM:
            self.exhausted
        default:
            .tunnel(503, .destinationUnavailable, "the origin cannot be reached")
        }
    }
}
