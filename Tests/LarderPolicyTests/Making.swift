import LarderHTTP
import LarderPolicy

/// The moment at which all tables are set: Tue, 14 Nov 2023 22:13:20 GMT.
let t0 = Timestamp(seconds: 1_700_000_000)

/// Fields from a line of text: `Name: value | Name: value`.
///
/// A value `@60` is the date sixty seconds after `t0`, `@-60` the one before.
func fields(_ text: String) -> Fields {
    var fields = Fields()
    for line in text.split(separator: "|") {
        guard let colon = line.firstIndex(of: ":") else { continue }
        let name = line[..<colon].filter { $0 != " " }
        var value = String(line[line.index(after: colon)...])
        while value.first == " " { value.removeFirst() }
        while value.last == " " { value.removeLast() }
        if value.hasPrefix("@"), let offset = Int64(value.dropFirst()) {
            value = HTTPDate.format(t0 + .seconds(offset))
        }
        fields.append(String(name), value)
    }
    return fields
}

func uri(_ path: String = "/", host: String = "a.example", scheme: Scheme = .http) -> TargetURI {
    TargetURI(scheme: scheme, host: host, pathAndQuery: path)
}

func request(
    _ text: String = "", method: Method = .get, uri target: TargetURI = uri(),
    bodyLength: BodyLength = .none
) -> Request {
    Request(method: method, uri: target, fields: fields(text), bodyLength: bodyLength)
}

func response(_ text: String = "", status: UInt16 = 200) -> ResponseHead {
    ResponseHead(status: StatusCode(status), fields: fields(text))
}

/// A response stored at `t0`, without delay, unless told otherwise.
func stored(
    _ text: String = "", status: UInt16 = 200, varying: String = "", delay: Double = 0,
    received: Int64 = 0, invalidated: Bool = false
) -> StoredHead {
    let received = t0 + .seconds(received)
    return StoredHead(
        status: StatusCode(status), fields: fields(text), varyingFields: fields(varying),
        requestTime: received - .seconds(delay), responseTime: received,
        isInvalidated: invalidated)
}

extension PolicyConfiguration {
    static let shared = PolicyConfiguration()
    static let `private` = PolicyConfiguration(kind: .private)
}

/// What a verdict says, without the numbers of freshness: what most tables are about.
enum Said: Equatable, Sendable {
    case serve
    case serveStale(PolicyReason)
    case serveAndRevalidate(PolicyReason)
    case validate(CacheStatus.Forward, PolicyReason)
    case fetch(CacheStatus.Forward, PolicyReason)
    case refuse(PolicyReason)

    init(_ verdict: ReuseVerdict) {
        switch verdict {
        case .serve(_, _, nil, _): self = .serve
        case .serve(_, _, let reason?, false): self = .serveStale(reason)
        case .serve(_, _, let reason?, true): self = .serveAndRevalidate(reason)
        case .validate(_, let forward, let reason): self = .validate(forward, reason)
        case .fetch(let forward, let reason): self = .fetch(forward, reason)
        case .refuse(let reason): self = .refuse(reason)
        }
    }
}
