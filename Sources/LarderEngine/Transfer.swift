import LarderHTTP
import LarderSession
import LarderState
import Synchronization

/// A request whose fetch its session owns, once its response is found worth it.
final class Transfer: FetchOwner {
    let id: UInt64
    /// As its client sent it; nothing of the session's is in it.
    let request: Request
    let requester: Requester
    let begun: Timestamp
    /// Whose it is; kept as long as the transfer is.
    let part: PrincipalSession
    private let desk: TransferDesk
    private let isKept = Atomic(true)

    init(
        id: UInt64, _ request: Request, by requester: Requester, begun: Timestamp,
        part: PrincipalSession, desk: TransferDesk
    ) {
        self.id = id
        self.request = request
        self.requester = requester
        self.begun = begun
        self.part = part
        self.desk = desk
    }

    /// When it is given up.
    var deadline: Timestamp { self.begun + TransferDesk.patience }

    var keepsFetch: Bool { self.isKept.load(ordering: .relaxed) }

    /// Nothing keeps its fetch but the clients that have it.
    func letGo() { self.isKept.store(false, ordering: .relaxed) }

    func fetch(stores length: UInt64?, received: @escaping @Sendable () -> UInt64) -> Bool {
        self.desk.begin(self, length: length, received: received)
    }

    func fetchEnded(_ ending: FetchEnding) { self.desk.fetchEnded(self.id, ending) }

    /// What it takes to ask for it again.
    ///
    /// - Parameter begun: when the first request for it came.
    func kept(since begun: Timestamp) -> KeptTransfer {
        KeptTransfer(
            id: self.id, uri: self.request.uri.description, fields: self.request.fields,
            begun: begun, requester: self.requester)
    }

    /// Whether a request may become a transfer at all: a GET for the whole, over HTTP.
    static func mayBe(_ request: Request) -> Bool {
        guard request.method == .get, request.bodyLength == .none else { return false }
        switch request.uri.scheme {
        case .http, .https: break
        default: return false
        }
        return !request.fields.lines.contains { line in
            switch line.known {
            case .range, .ifRange, .ifNoneMatch, .ifModifiedSince, .ifMatch, .ifUnmodifiedSince:
                true
            default: false
            }
        }
    }

    /// Whether another request is for the same URI of the same part.
    ///
    /// Which response of those that differ by `Vary` is not asked: clients that ask again send other
    /// fields each time, and the last of them knows what it wants.
    func isSame(as other: Transfer) -> Bool {
        self.part === other.part && self.request.uri == other.request.uri
    }
}
