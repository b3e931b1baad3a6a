import Dispatch
import Foundation
import LarderCookies
import LarderEngine
import LarderHTTP
import LarderSession
import Synchronization

/// A storage with methods of a program's own, as a session's engine meets it.
///
/// What a response sets is given to the program on a queue of its own, since an engine's thread must
/// not wait for it; the response's head waits, and so does what follows it (`whenKept`).
final class OverriddenCookies: HopCookies {
    private let storage: HTTPCookieStorage
    private let accept: HTTPCookie.AcceptPolicy
    private let sends: Bool
    private let queue = DispatchQueue(label: "url-loading.cookie-storage")
    private let pending = Atomic(0)

    init(_ storage: HTTPCookieStorage, accept: HTTPCookie.AcceptPolicy, sends: Bool) {
        self.storage = storage
        self.accept = accept
        self.sends = sends
    }

    func addCookies(to fields: inout Fields, for hop: Hop, at now: Timestamp) {
        guard self.sends, hop.handlesCookies else { return }
        guard let value = HTTPCookie.field(with: self.cookies(for: hop)) else { return }
        fields.remove(FieldName(.cookie))
        fields.append("Cookie", value)
    }

    func showCookies(in fields: inout Fields, for hop: Hop, at now: Timestamp) {
        self.addCookies(to: &fields, for: hop, at: now)
    }

    private func cookies(for hop: Hop) -> [HTTPCookie] {
        if let task = hop.cookies?.owner as? URLSessionTask {
            let box = AnswerBox()
            self.storage.getCookiesFor(task) { box.answer($0) }
            if let answered = box.answered { return answered }
        }
        let context = CookieContext(
            uri: hop.uri, mainDocumentHost: hop.cookies?.mainDocumentHost,
            suffixes: PublicSuffixList.system)
        return Self.url(hop.uri).flatMap { self.storage.cookies(for: $0, in: context) } ?? []
    }

    /// What a completion handler got, if it was called in time.
    private final class AnswerBox: Sendable {
        private let cookies = Mutex<[HTTPCookie]?>(nil)

        var answered: [HTTPCookie]? { self.cookies.withLock { $0 } }

        func answer(_ cookies: [HTTPCookie]?) { self.cookies.withLock { $0 = cookies ?? [] } }
    }

    var showsSetCookie: Bool { true }

    func takeCookies(from head: inout ResponseHead, for hop: Hop, at now: Timestamp) {
        guard hop.handlesCookies, let url = Self.url(hop.uri), self.accepts(hop) else { return }
        let date = CookieMoment.date(now)
        let cookies = head.fields.values(FieldName(.setCookie)).compactMap { line in
            CookieFacts(line, from: hop.uri, now: date, isForTask: true)
        }
        guard !cookies.isEmpty else { return }
        let task = hop.cookies?.owner as? URLSessionTask
        let document = hop.cookies?.mainDocumentHost.flatMap {
            URL(string: "\(hop.uri.scheme.rawValue)://\($0)/")
        }
        let objects = cookies.map { facts in
            var facts = facts
            facts.originURL = url
            return HTTPCookie(facts)
        }
        self.pending.wrappingAdd(1, ordering: .acquiringAndReleasing)
        self.queue.async { [self] in
            HTTPCookieStorage.$sessionsPolicy.withValue(self.accept) {
                if let task {
                    self.storage.storeCookies(objects, for: task)
                } else {
                    self.storage.setCookies(objects, for: url, mainDocumentURL: document)
                }
            }
            self.pending.wrappingSubtract(1, ordering: .acquiringAndReleasing)
        }
    }

    /// Whether the session's policy takes anything from such a response.
    private func accepts(_ hop: Hop) -> Bool {
        switch self.accept {
        case .always: return true
        case .never: return false
        case .onlyFromMainDocumentDomain:
            guard let document = hop.cookies?.mainDocumentHost else { return true }
            return CookieDomain.isSameSite(hop.uri.host, document, PublicSuffixList.system)
        }
    }

    func whenKept(_ body: @escaping @Sendable () -> Void) -> Bool {
        guard self.pending.load(ordering: .acquiring) > 0 else { return false }
        self.queue.async(execute: body)
        return true
    }

    private static func url(_ uri: TargetURI) -> URL? {
        URL(string: "\(uri.scheme.rawValue)://\(uri.authority)\(uri.pathAndQuery)")
    }
}
