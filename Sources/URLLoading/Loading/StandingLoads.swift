import Foundation
import LarderHTTP
import LarderPolicy
import LarderSession
import NIOCore
import Synchronization

/// Answers of a session's cache that stand, by the requests that got them.
///
/// Programs ask for the same things in the same words: as long as nothing changes under the key, such
/// a request is neither read nor judged anew. What is asked for the first time is only remembered as
/// seen. Bounded in entries and in the bytes of each; a request has one place, and takes that of
/// another. Any thread.
final class StandingLoads: Sendable {
    /// What two requests have to share in order to get the same answer.
    struct Question: Equatable, Sendable {
        let url: String
        let fields: [String: String]?
        let cachePolicy: NSURLRequest.CachePolicy

        /// Bytes of its URL and fields; what is longer is judged each time.
        private static let longest = 4_096

        /// nil: no answer to such a request stands.
        init?(_ order: LoadOrder) {
            guard order.usesCache, order.body == nil, order.authorization == nil,
                order.request.httpMethod == "GET", let url = order.request.url, url.isPlainlyWeb
            else { return nil }
            self.url = url.absoluteString
            self.fields = order.request.allHTTPHeaderFields
            var bytes = self.url.utf8.count
            for (name, value) in self.fields ?? [:] {
                bytes += name.utf8.count + value.utf8.count
            }
            guard bytes <= Self.longest else { return nil }
            self.cachePolicy = order.request.cachePolicy
        }

        static func == (a: Self, b: Self) -> Bool {
            // A URL's text has ASCII characters alone.
            guard a.cachePolicy == b.cachePolicy, a.url == b.url else { return false }
            let (fields, others) = (a.fields ?? [:], b.fields ?? [:])
            // Byte for byte: what strings call equal an origin may tell apart.
            return fields.count == others.count
                && fields.allSatisfy { name, value in
                    others[name].map { $0.utf8.elementsEqual(value.utf8) } ?? false
                }
        }
    }

    /// An answer that stands.
    final class Entry: Sendable {
        private struct Said {
            var head: ResponseHead
            var age: Int64?
        }

        let question: Question
        let standing: StandingAnswer
        private let bodyLength: BodyLength
        private let cacheStatus: CacheStatus
        private let said: Mutex<Said>

        init(_ question: Question, _ standing: StandingAnswer, _ answer: Answer) {
            self.question = question
            self.standing = standing
            self.bodyLength = answer.bodyLength
            self.cacheStatus = answer.cacheStatus
            self.said = Mutex(Said(head: answer.head, age: nil))
        }

        /// The answer, as it is given once more.
        func answer(_ repetition: StandingAnswer.Repetition) -> Answer {
            let age = repetition.moment.age
            let head = self.said.withLock { said in
                // Within one second, which is most of the time, it says so already.
                if said.age != age {
                    said.head.fields.remove(FieldName(.age))
                    said.head.fields.append("Age", String(age))
                    said.age = age
                }
                return said.head
            }
            return Answer(
                head: head, bodyLength: self.bodyLength,
                body: repetition.body.map { .resident($0) } ?? .none,
                cacheStatus: self.cacheStatus)
        }
    }

    private struct State {
        var entries: [Entry?] = []
        /// Hashes of requests that were seen: what never comes again is not kept.
        var seen: [Int] = []
    }

    enum Finding {
        case known(Entry)
        /// It came before: its answer may be worth keeping.
        case seen
        case new
    }

    private static let places = 256
    /// A response with a longer head is judged each time.
    private static let longestHead = 4_096

    private let state = Mutex(State())

    /// What is known of a request; it counts as seen from now on.
    func find(_ question: Question) -> Finding {
        let hash = question.url.hashValue
        let place = Self.place(of: hash)
        let (entry, last) = self.state.withLock { state -> (Entry?, Int) in
            if state.seen.isEmpty {
                state.seen = Array(repeating: 0, count: Self.places)
                state.entries = Array(repeating: nil, count: Self.places)
            }
            let last = state.seen[place]
            state.seen[place] = hash
            return (state.entries[place], last)
        }
        if let entry, entry.question == question { return .known(entry) }
        return last == hash ? .seen : .new
    }

    /// Keeps an answer that stands.
    func keep(_ answer: Answer, to question: Question) {
        guard let standing = answer.standing, standing.isResident,
            answer.head.fields.bytes.count <= Self.longestHead
        else { return }
        let entry = Entry(question, standing, answer)
        let place = Self.place(of: question.url.hashValue)
        let former = self.state.withLock { state -> Entry? in
            guard state.entries.indices.contains(place) else { return nil }
            return exchange(&state.entries[place], with: entry)
        }
        // Let go of outside of the lock.
        withExtendedLifetime(former) {}
    }

    private static func place(of hash: Int) -> Int {
        Int(UInt(bitPattern: hash) % UInt(self.places))
    }
}

extension HTTPLoad {
    /// By which the cache may have an answer that stands; nil: no cache is asked, or a program's methods
    /// are.
    var question: StandingLoads.Question? {
        guard let cache = self.engine.cache, !cache.isOverridden else { return nil }
        return StandingLoads.Question(self.order)
    }

    /// Answers as the same request was answered before; false, and nothing has happened, where that does
    /// not stand any more.
    func isAnswered(by entry: StandingLoads.Entry) -> Bool {
        let policy = self.engine.rules.cachePolicy(for: self.order.request)
        guard let repetition = self.engine.caching.again(entry.standing, cachePolicy: policy) else {
            return false
        }
        guard self.state.withLock({ $0.machine.begins() }) != nil else { return true }
        self.exchange(answered: entry.answer(repetition))
        return true
    }
}
