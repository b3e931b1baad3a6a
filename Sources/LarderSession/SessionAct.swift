import Synchronization

/// What a session did by itself on the way to an answer: one case an act.
///
/// The raw value is a token: it names a counter, and stands in logs.
package enum SessionAct: String, Sendable, Codable, CaseIterable {
    // MARK: Injection

    /// A rule's credential was added to a request (settings).
    case credentialInjected = "credential-injected"
    /// A rule names a credential that the session has not, or one that cannot stand in a field: the
    /// request did not go out (settings).
    case credentialMissing = "credential-missing"
    /// A rule fits, but its credential must not travel over plain http: the request went without
    /// (settings).
    case injectionInsecure = "injection-insecure"

    // MARK: Challenges

    /// A credential was sent before anyone asked (RFC 7617 §2.2, RFC 7616 §3.6).
    case credentialPreempted = "credential-preempted"
    /// A 401 was answered (RFC 9110 §11.6.1).
    case challengeAnswered = "challenge-answered"
    /// A nonce had become too old, and another one took its place (RFC 7616 §3.3).
    case nonceRenewed = "nonce-renewed"
    /// What was sent is not good there: it is not sent again until it is changed.
    case credentialRefused = "credential-refused"
    /// A 401 was passed on, as what is held for it was refused before and has not changed since.
    case credentialWithheld = "credential-withheld"
    /// A field `WWW-Authenticate` was not understood in full (RFC 9110 §11.6.1).
    case challengeMalformed = "challenge-malformed"
    /// The origin's proof that it knows the password too is wrong (RFC 7616 §3.5).
    case originUnproven = "origin-unproven"
    /// The content was on its way and is not kept: the response was passed on as it came.
    case contentNotRepeatable = "content-not-repeatable"

    // MARK: Redirections

    /// A redirection was followed (RFC 9110 §15.4).
    case redirectFollowed = "redirect-followed"
    /// The client may not have the target, or nobody can: the redirection was passed on.
    case redirectNotPermitted = "redirect-not-permitted"
    /// A redirection sets cookies, which are the client's business: it was passed on
    /// (RFC 6265bis §5.6).
    case redirectSetsCookie = "redirect-sets-cookie"
    /// More redirections in a row than anyone needs.
    case redirectLimit = "redirect-limit"
}

extension SessionAct {
    /// The section of the RFC that lets a session do it, or the setting that has it done.
    package var section: String {
        switch self {
        case .credentialInjected, .credentialMissing: "injections"
        case .injectionInsecure: "injections.insecure"
        case .credentialPreempted: "RFC 7617 §2.2, RFC 7616 §3.6"
        case .challengeAnswered, .challengeMalformed: "RFC 9110 §11.6.1"
        case .nonceRenewed: "RFC 7616 §3.3"
        case .credentialRefused, .credentialWithheld: "RFC 9110 §15.5.2"
        case .originUnproven: "RFC 7616 §3.5"
        case .contentNotRepeatable: "RFC 9110 §10.1.1"
        case .redirectFollowed, .redirectLimit: "follow-redirects"
        case .redirectNotPermitted: "access"
        case .redirectSetsCookie: "cookies.mode"
        }
    }
}

/// How often a session did what.
///
/// Any thread may add; copies count in the same place.
struct ActCounters: Sendable {
    private final class Cell: Sendable {
        let counter = Counter()
    }

    private let cells: [SessionAct: Cell] = Dictionary(
        uniqueKeysWithValues: SessionAct.allCases.map { ($0, Cell()) })

    func add(_ act: SessionAct) {
        self.cells[act]?.counter.add()
    }

    /// How often each happened that has at least once.
    func snapshot() -> [SessionAct: UInt64] {
        self.cells.mapValues { $0.counter.current }.filter { $0.value > 0 }
    }
}
