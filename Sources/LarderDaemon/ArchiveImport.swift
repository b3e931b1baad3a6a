import LarderArchive
package import LarderConfig
package import LarderControl
package import LarderHTTP
package import LarderPolicy
package import LarderStore
import NIOCore

/// Takes the responses of a WARC file into a store.
///
/// The responses of Larder's own archives come back as they were, with the times that they had, so
/// that nothing is fresher than it was; but how often and when they were used begins anew. Of all
/// others only what the session might store if it came from the origin now is taken, for which the
/// request must be known: it is looked for before the response, and a few records behind it. Runs
/// on a thread that may wait; holds a bounded piece of the file.
package final class ArchiveImport {
    /// Where to and by which rules.
    package struct Target {
        package var store: any ObjectStore
        package var policy: PolicyConfiguration
        /// By what the session tells its clients apart.
        package var principals: PrincipalsWord
        package var now: () -> Timestamp
        /// Asked now and then whether to go on.
        package var isCancelled: () -> Bool

        package init(
            store: any ObjectStore, policy: PolicyConfiguration, principals: PrincipalsWord,
            now: @escaping () -> Timestamp, isCancelled: @escaping () -> Bool = { false }
        ) {
            self.store = store
            self.policy = policy
            self.principals = principals
            self.now = now
            self.isCancelled = isCancelled
        }
    }

    /// What is told while it goes on.
    package enum Note: Sendable {
        /// Bytes read.
        case progress(UInt64)
        case problem(String)
    }

    /// Why a response is not taken.
    struct Refusal: Error {
        /// One word.
        var reason: String
        /// What is wrong with its record; nil where that is in order.
        var problem: String?

        init(_ reason: String, _ problem: String? = nil) {
            self.reason = reason
            self.problem = problem
        }
    }

    /// The file ends in the midst of a record.
    private struct CutShort: Error {}
    package struct Cancelled: Error {}

    private let source: ArchiveSource
    let target: Target
    let storing: ArchiveStoring
    private let report: (Note) -> Void
    private var parser = WARCParser()
    private var buffer = ByteBuffer()
    private var requests = ArchivedRequests()
    /// The parts of one stored response lie one behind the other.
    var openParts: OpenParts?
    private var outcome = ImportOutcome()
    private var problems = 0

    private static let mostProblems = 100
    private static let longestRequest: UInt64 = 262_144
    /// Records behind a response among which its request is looked for.
    private static let lookahead = 4

    package init(
        _ source: ArchiveSource, into target: Target, report: @escaping (Note) -> Void
    ) {
        self.source = source
        self.target = target
        self.storing = ArchiveStoring(target.store)
        self.report = report
    }

    /// Reads to the end.
    ///
    /// - Throws: where the file cannot be read at all, or `Cancelled`; what was whole until then is
    ///   stored.
    package func run() throws -> ImportOutcome {
        do {
            if try self.isHAR() {
                try self.takeHAR()
            }
            while let head = try self.nextHead() {
                guard !self.target.isCancelled() else { throw Cancelled() }
                try self.take(head)
                self.report(.progress(self.parser.position))
            }
        } catch let error as WARCError {
            self.note(error.description)
            self.outcome.isCutShort = true
        } catch is CutShort {
            self.note(
                "record \(self.parser.record) at byte \(self.parser.offset): the file ends within it"
            )
            self.outcome.isCutShort = true
        }
        let tally = self.storing.finish()
        self.outcome.stored = tally.stored
        self.outcome.bytes = tally.bytes
        self.outcome.refused.merge(tally.refused) { $0 &+ $1 }
        return self.outcome
    }

    private func note(_ problem: String) {
        self.outcome.malformed += 1
        self.problems += 1
        if self.problems <= Self.mostProblems { self.report(.problem(problem)) }
    }

    /// Whether the file is one JSON document.
    private func isHAR() throws -> Bool {
        try self.readMore()
        let marks: [UInt8] = [0xEF, 0xBB, 0xBF, 0x20, 0x09, 0x0A, 0x0D]
        if self.buffer.readableBytesView.starts(with: [0x1F, 0x8B]) {
            throw ControlRefusal(
                failure: ControlFailure(
                    .invalid,
                    "the archive is compressed, which is not read here; "
                        + "zcat FILE | larder cache import -"))
        }
        return self.buffer.readableBytesView.first { !marks.contains($0) } == UInt8(ascii: "{")
    }

    private func takeHAR() throws {
        let first = self.buffer
        self.buffer = ByteBuffer()
        let isWhole = try self.takeEntries(first) {
            try self.source.read()
        } refuse: { refusal, entry in
            self.outcome.refuse(refusal.reason)
            if let problem = refusal.problem { self.note("entry \(entry): \(problem)") }
        } read: {
            self.report(.progress($0))
        }
        if isWhole { return }
        self.note("the document is not whole")
        self.outcome.isCutShort = true
    }

    // MARK: Records

    @discardableResult
    private func readMore() throws -> Bool {
        guard var piece = try self.source.read() else { return false }
        if self.buffer.readableBytes == 0 {
            self.buffer = piece
        } else {
            self.buffer.discardReadBytes()
            self.buffer.writeBuffer(&piece)
        }
        return true
    }

    /// The head of the next record, whatever is left of this one passed over; nil at the end.
    private func nextHead() throws -> WARCHead? {
        try self.skipBlock()
        while true {
            switch try self.parser.next(&self.buffer) {
            case .head(let head): return head
            case .block, .end: continue
            case .needMore:
                if try self.readMore() { continue }
                let rest = self.buffer.readableBytesView
                guard self.parser.isBetweenRecords,
                    rest.allSatisfy({ $0 == ASCII.cr || $0 == ASCII.lf })
                else { throw CutShort() }
                return nil
            }
        }
    }

    private func skipBlock() throws {
        while self.parser.blockLeft > 0, self.buffer.readableBytes > 0 {
            _ = try self.parser.next(&self.buffer)
        }
        let left = self.parser.skipBlock()
        guard left <= self.source.size - min(self.source.size, self.source.position) else {
            throw CutShort()
        }
        if left > 0 { self.source.seek(to: self.source.position + left) }
    }

    /// The next bytes of the block; nil at its end.
    func nextPiece() throws -> ByteBuffer? {
        while self.parser.blockLeft > 0 {
            if case .block(let piece) = try self.parser.next(&self.buffer) { return piece }
            guard try self.readMore() else { throw CutShort() }
        }
        return nil
    }

    private func take(_ head: WARCHead) throws {
        switch head.type {
        case "response" where head.isHTTP: try self.takeResponse(head)
        case "request" where head.isHTTP: try self.takeRequest(head)
        case "": self.note(self.place + ": the record does not say what it is")
        default: self.outcome.skip(head.type)
        }
    }

    private var place: String { "record \(self.parser.record) at byte \(self.parser.offset)" }

    private func takeRequest(_ head: WARCHead) throws {
        guard let request = try self.request(head) else {
            return self.note(self.place + ": the request cannot be read")
        }
        self.requests.add(request)
    }

    private func request(_ head: WARCHead) throws -> ArchivedRequest? {
        guard head.contentLength <= Self.longestRequest else { return nil }
        var block = ByteBuffer()
        while var piece = try self.nextPiece() { block.writeBuffer(&piece) }
        return ArchivedRequest(head, &block)
    }

    private func takeResponse(_ head: WARCHead) throws {
        let place = self.place
        do {
            try self.store(head)
        } catch let refusal as Refusal {
            self.outcome.refuse(refusal.reason)
            if let problem = refusal.problem { self.note("\(place): \(problem)") }
        }
    }

    private func store(_ head: WARCHead) throws {
        if head.isTruncated { throw Refusal("truncated") }
        guard let uri = head.targetURI.flatMap({ TargetURI(text: $0) }) else {
            throw Refusal("no-uri")
        }
        guard let date = head.date else {
            throw Refusal("no-date", "WARC-Date is missing or wrong")
        }
        guard let request = try self.requests.first(for: head) ?? self.requestBehind(head) else {
            // Whether it bore credentials, and what it varied by, nobody knows.
            throw Refusal("no-request")
        }
        try self.store(
            Found(record: head, uri: uri, date: min(date, self.target.now()), request: request))
    }

    /// Looks for the request of a response a few records behind it, and comes back.
    private func requestBehind(_ response: WARCHead) throws -> ArchivedRequest? {
        let (parser, buffer, position) = (self.parser, self.buffer, self.source.position)
        defer {
            self.parser = parser
            self.buffer = buffer
            self.source.seek(to: position)
        }
        do {
            for _ in 0..<Self.lookahead {
                guard let head = try self.nextHead() else { return nil }
                guard head.type == "request", head.isHTTP, let request = try self.request(head)
                else { continue }
                if request.belongs(to: response) { return request }
            }
            return nil
        } catch is CutShort {
            return nil
        } catch is WARCError {
            return nil
        }
    }
}
