import Dispatch
import Foundation
import LarderCookies
import LarderEngine
import LarderHTTP
import LarderSession
import LarderState
import Synchronization

/// The cookies of a storage: the engine's, and the objects that programs have put there.
///
/// The engine's rules decide what is held and what is sent. An object that a program set is given
/// back as long as it is what the engine holds, with the properties that the engine does not know.
final class CookieStore: Sendable {
    private struct Watch {
        weak var owner: HTTPCookieStorage?
    }

    /// Enough for all that sites need, and no more than a jar of a few MiB.
    private static let limits = CookieLimits(perDomain: 1000, total: 6000)
    /// Where observers hear what happened on a thread that they must not hold up.
    private static let queue = DispatchQueue(label: "url-loading.cookies")

    let cookies: SessionCookies
    private let objects: ObjectTable
    private let watch: Mutex<Watch>
    private let policy = Mutex(HTTPCookie.AcceptPolicy.always)
    private let relay: Relay
    private let kept: KeptCookies?

    /// - Parameter state: where cookies with a date outlive the process; nil: nowhere.
    init(_ state: SharedState? = nil) {
        let relay = Relay()
        self.relay = relay
        self.objects = ObjectTable()
        self.watch = Mutex(Watch())
        let cookies = SessionCookies(
            CookieHandling(
                accept: .always, merging: .jarReplaces, showsSetCookie: true,
                limits: Self.limits),
            storage: state?.cookies, suffixes: PublicSuffixList.system,
            report: DiskNotices.cookies(state?.configuration.directory ?? ""),
            observer: { _ in relay.changed() })
        self.cookies = cookies
        self.kept = state.map { KeptCookies($0, of: cookies) }
        relay.store = self
    }

    /// Brings changes by responses from the engine, which is there before the store is.
    private final class Relay: Sendable {
        private struct Target {
            weak var store: CookieStore?
        }

        private let target = Mutex(Target())

        var store: CookieStore? {
            get { self.target.withLock { $0.store } }
            set { self.target.withLock { $0.store = newValue } }
        }

        func changed() {
            guard let store = self.store else { return }
            CookieStore.queue.async { store.post(.NSHTTPCookieManagerCookiesChanged) }
        }
    }

    /// Whom observers know.
    var owner: HTTPCookieStorage? {
        get { self.watch.withLock { $0.owner } }
        set { self.watch.withLock { $0.owner = newValue } }
    }

    /// Whether anything outlives the process.
    var isKept: Bool { self.kept != nil }

    private func post(_ name: Notification.Name) {
        guard let owner = self.owner else { return }
        NotificationCenter.default.post(name: name, object: owner)
    }

    // MARK: Looking

    func all() -> [HTTPCookie] {
        self.kept?.refresh()
        return self.objects.objects(of: self.cookies.snapshot(at: CookieMoment.now))
    }

    func cookies(for url: URL) -> [HTTPCookie] {
        guard let context = Self.context(url, mainDocumentURL: nil) else { return [] }
        self.kept?.refresh()
        return self.objects.objects(of: self.cookies.cookies(for: context, at: CookieMoment.now))
    }

    /// A request for the URL as cookies look at it; nil where it has none.
    ///
    /// - Parameters:
    ///   - mainDocumentURL: nil: the request is its own main document.
    ///   - accept: nil: as the jar says.
    static func context(
        _ url: URL, mainDocumentURL: URL?, accept: HTTPCookie.AcceptPolicy? = nil
    ) -> CookieContext? {
        CookieHost.target(url).map { target in
            CookieContext(
                uri: target,
                mainDocumentHost: mainDocumentURL.map { CookieHost.name($0.host ?? "") },
                suffixes: PublicSuffixList.system, accept: accept?.jarPolicy)
        }
    }

    // MARK: Changing

    var acceptPolicy: HTTPCookie.AcceptPolicy {
        get { self.policy.withLock { $0 } }
        set {
            let isNew = self.policy.withLock { policy in
                defer { policy = newValue }
                return policy != newValue
            }
            if isNew { self.post(.NSHTTPCookieManagerAcceptPolicyChanged) }
        }
    }

    func set(_ cookie: HTTPCookie) {
        let now = CookieMoment.now
        let offered = cookie.facts.cookie(creation: now, suffixes: PublicSuffixList.system)
        self.change([cookie], [offered]) { $0.set($1, keepingExpiry: true, at: now) }
    }

    func set(
        _ cookies: [HTTPCookie], for url: URL, mainDocumentURL: URL?,
        accept: HTTPCookie.AcceptPolicy
    ) {
        guard
            let context = Self.context(url, mainDocumentURL: mainDocumentURL, accept: accept)
        else { return }
        let now = CookieMoment.now
        let offered = cookies.map {
            $0.facts.cookie(creation: now, suffixes: PublicSuffixList.system)
        }
        self.change(cookies, offered) { $0.store($1, for: context, at: now) }
    }

    private func change(
        _ objects: [HTTPCookie], _ offered: [Cookie],
        _ body: (inout CookieJar, [Cookie]) -> [CookieOutcome]
    ) {
        self.kept?.refresh()
        self.kept?.prepare()
        let (outcomes, count) = self.cookies.changeNow { jar in
            let outcomes = body(&jar, offered)
            return ((outcomes, jar.count), outcomes.flatMap(\.changes))
        }
        for (index, outcome) in outcomes.enumerated() where outcome.isStored {
            self.objects.note(objects[index], for: offered[index].identity, held: count)
        }
        if outcomes.contains(where: { !$0.differences.isEmpty }) {
            self.post(.NSHTTPCookieManagerCookiesChanged)
        }
    }

    func delete(_ cookie: HTTPCookie) {
        let identity = cookie.facts.cookie(
            creation: CookieMoment.now, suffixes: PublicSuffixList.system
        ).identity
        self.remove { $0.remove(identity) }
    }

    func remove(since date: Date) {
        let moment = CookieMoment.timestamp(date)
        self.remove { $0.removeCookies(since: moment) }
    }

    func removeAll() {
        self.remove { $0.remove { _ in true } }
    }

    /// Returns when all changes so far outlive the process, or cannot be kept.
    func flush() async {
        try? await self.cookies.flush()
    }

    /// Has what was set last kept before the process ends.
    func finishAtExit() {
        let cookies = self.cookies
        LastWork.add { try? await cookies.flush() }
    }

    // MARK: Sessions

    /// The cookies as the engine of a session meets them; what is kept is read before it returns.
    func view(accept: HTTPCookie.AcceptPolicy, sends: Bool) -> any HopCookies {
        let view = CookieView(self.cookies, accept: accept.jarPolicy, sends: sends)
        guard let kept = self.kept else { return view }
        kept.refresh()
        return KeptCookieView(view, kept)
    }

    private func remove(_ body: (inout CookieJar) -> [CookieChange]) {
        self.kept?.refresh()
        let isChanged = self.cookies.changeNow { jar in
            let changes = body(&jar)
            return (!changes.isEmpty, changes)
        }
        if isChanged { self.post(.NSHTTPCookieManagerCookiesChanged) }
    }
}

/// The objects that programs have put into a storage, by the identity of their cookies.
private final class ObjectTable: Sendable {
    private let table = Mutex<[Cookie.Identity: HTTPCookie]>([:])
    /// How many may be there whose cookies have gone.
    private static let slack = 64

    /// - Parameter held: how many cookies there are: the table is not to hold many more.
    func note(_ object: HTTPCookie, for identity: Cookie.Identity, held: Int) {
        self.table.withLock { table in
            if table.count > held + Self.slack { table.removeAll() }
            table[identity] = object
        }
    }

    /// The objects of these cookies: those that programs have put there, and new ones.
    func objects(of cookies: [Cookie]) -> [HTTPCookie] {
        self.table.withLock { table in
            cookies.map { cookie in
                guard let object = table[cookie.identity], object.facts.describes(cookie) else {
                    return HTTPCookie(CookieFacts(cookie))
                }
                return object
            }
        }
    }
}

extension HTTPCookie.AcceptPolicy {
    var jarPolicy: CookieAcceptPolicy {
        switch self {
        case .always: .always
        case .never: .never
        case .onlyFromMainDocumentDomain: .onlyFromMainDocumentDomain
        }
    }
}
