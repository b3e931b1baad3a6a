import Glibc
import LarderConfig
import LarderControl
import LarderDisk
import LarderEngine
import LarderHTTP
import LarderPolicy
import LarderProxy
import LarderSession
import LarderStore
import LarderTransfer

extension RunningProxy: ControlResponder {
    /// Answers a command, line by line.
    func answer(
        _ request: ControlRequest, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        switch request {
        case .status: try await reply(.status(self.status()))
        case .statistics(let name):
            for member in try self.members(named: name) {
                try await reply(.statistics(self.statistics(of: member)))
            }
        case .listMemory(let name, let copiesInFull):
            for member in try self.members(named: name) {
                try await Self.listMemory(
                    of: member.session, copiesInFull: copiesInFull == true, reply)
            }
        case .showMemory(let name, let url, let principal):
            for member in try self.members(named: name) {
                try await Self.showMemory(of: member, url: url, principal, reply)
            }
        case .readMemory(let name, let url, let id, let principal):
            for member in try self.members(named: name) {
                try await Self.readMemory(of: member, url: url, id: id, principal, reply)
            }
        case .listFetches:
            for member in self.members { try await Self.listFetches(of: member, reply) }
        case .listTransfers(let name):
            for member in try self.members(named: name) {
                try await Self.listTransfers(of: member, reply)
            }
        case .cancelTransfers(let name, let selection):
            let cancelled = await Self.cancelTransfers(selection, in: try self.members(named: name))
            try await reply(.removed(cancelled))
        case .listMissing(let name, let clears):
            for member in try self.members(named: name) {
                try await Self.listMissing(of: member, clears: clears, reply)
            }
        case .purge(let name, let selection, let principal):
            let filter = try PurgeFilter(selection, principal: principal)
            try await Self.purge(self.members(named: name), filter, reply)
        case .compact(let name):
            for member in try self.members(named: name) {
                if let outcome = try await Self.compact(member, reply) {
                    try await reply(.compacted(outcome))
                }
            }
        case .reload:
            do {
                try await reply(.reloaded(self.reload()))
            } catch let error as ConfigurationError {
                throw ControlRefusal(invalid: "\(error)")
            }
        case .mend(let name, let damage):
            try await reply(.mended(self.mend(damage, in: self.members(named: name))))
        case .importArchive(let name, let path):
            for member in try self.members(named: name) {
                try await self.importArchive(path, into: member, reply)
            }
        case .explain(let question):
            for member in try self.members(named: question.session) {
                let part = try await member.part(of: question.principal, hasCommon: false)
                var record = try await Self.explain(question, by: part.session)
                try record.fitLine()
                try await reply(.explanation(record))
            }
        case .cookies(let name, let principal, let command):
            try await self.answer(command, session: name, principal: principal, reply)
        case .credentials(let name, let principal, let command):
            try await self.answer(command, session: name, principal: principal, reply)
        }
    }

    func members(named name: String?) throws -> [RunningSession] {
        guard let name else { return self.members }
        let found = self.members.filter { $0.settings.name.text == name }
        guard !found.isEmpty else {
            let names = self.members.map(\.settings.name.text).joined(separator: ", ")
            throw ControlRefusal(
                failure: ControlFailure(.noSuchSession, "no session \(name); there are: \(names)"))
        }
        return found
    }

    /// How many of the last exchanges about a URI are told.
    private static let historyLimit = 16

    private static func explain(
        _ question: ExplainQuestion, by session: Session
    ) async throws -> ExplanationRecord {
        let request = try question.request()
        let cachePolicy = try question.cachePolicy()
        let history = session.recentExchanges(for: request.uri, limit: Self.historyLimit)
        let acts = session.foreseenActs(for: request)
        return await withCheckedContinuation { continuation in
            session.explain(request, cachePolicy: cachePolicy) { explanation, bodyLengths in
                var record = ExplanationRecord(
                    explanation, of: request, session: question.session,
                    bodyLengths: bodyLengths, history: history)
                if !acts.isEmpty { record.acts = acts.map { ReasonRecord($0) } }
                continuation.resume(returning: record)
            }
        }
    }

    private func status() -> DaemonStatus {
        var status = DaemonStatus(
            release: Release.name, pid: getpid(),
            startedMicroseconds: self.started.microseconds,
            listeners: self.listeners.map { "\($0)" },
            sessions: self.members.map(\.settings.name.text), configuration: self.loaded.file)
        status.clients = DaemonStatus.Clients(self.proxy.statistics())
        status.origins = DaemonStatus.Origins(self.members.map { $0.open.upstream.statistics() })
        return status
    }

    /// Compacts a session's cache file, and tells how it gets on; nil where it has none.
    ///
    /// It goes on where nobody listens any more.
    private static func compact(
        _ member: RunningSession, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws -> CompactionOutcome? {
        let (steps, step) = AsyncStream.makeStream(
            of: UInt64.self, bufferingPolicy: .bufferingNewest(1))
        async let outcome = Self.compact(member) { done, _ in
            step.yield(done)
        } ended: {
            step.finish()
        }
        for await bytes in steps { try await reply(.progress(bytes)) }
        return try await outcome
    }

    private static func compact(
        _ member: RunningSession, progress: @escaping @Sendable (UInt64, UInt64) -> Void,
        ended: @Sendable () -> Void
    ) async throws -> CompactionOutcome? {
        defer { ended() }
        do {
            return try await member.open.compact(progress: progress).map {
                CompactionOutcome(
                    session: member.settings.name.text, before: $0.before, after: $0.after)
            }
        } catch let error as StoreError {
            throw ControlRefusal(
                failure: ControlFailure(
                    Self.code(of: error), "\(error.path): \(error.cause); \(error.remedy)"))
        }
    }

    private static func code(of error: StoreError) -> ControlFailure.Code {
        switch error.code {
        case .noSpace: .noSpace
        case .inUse, .closed, .cancelled: .unavailable
        case .missing, .notWritable, .untrusted, .damaged, .incomplete, .invalidConfiguration,
            .failed:
            .inputOutput
        }
    }

    private func statistics(of member: RunningSession) -> SessionStatistics {
        let counters = member.open.counters()
        let store = member.session.store.statistics()
        var statistics = SessionStatistics(
            session: member.settings.name.text, kind: member.settings.kind.rawValue,
            memory: .init(store.memory), disk: store.disk.map { .init($0) })
        statistics.fileBytes = store.fileBytes
        statistics.requests = counters.requests
        statistics.hits = counters.hits
        statistics.validated = counters.validated
        statistics.misses = counters.forwarded
        statistics.collapsed = counters.collapsed
        statistics.bytesServed = counters.bytesServed
        statistics.bytesFromCache = counters.bytesFromStore
        statistics.failures = counters.failed
        statistics.storeFailures = store.storeFailures
        statistics.damaged = store.damaged
        statistics.backgroundFetches = counters.backgroundFetches
        statistics.gapFetches = counters.gapFetches
        statistics.bodiesResumed = counters.bodiesResumed
        statistics.partsKept = counters.partsKept
        statistics.reasons = Dictionary(
            uniqueKeysWithValues: counters.reasons.map { ($0.key.rawValue, $0.value) })
        statistics.acts = Dictionary(
            uniqueKeysWithValues: counters.acts.map { ($0.key.rawValue, $0.value) })
        statistics.startedMicroseconds = self.started.microseconds
        statistics.pid = getpid()
        statistics.stored = counters.stored
        statistics.storesRefused = counters.storesAbandoned
        statistics.storesTooSlow = counters.storesTooSlow
        statistics.cancelled = counters.cancelled
        statistics.clientsCutOff = counters.clientsCutOff
        statistics.trouble = member.trouble.trouble
        return statistics
    }

    /// What all sessions did together since the start.
    func counters() -> SessionCounters {
        self.members.reduce(SessionCounters()) { $0 + $1.open.counters() }
    }
}

extension SessionStatistics.Tier {
    fileprivate init(_ tier: StoreStatistics.Tier) {
        self.init(
            objects: tier.objects, bytes: tier.bytes, capacity: tier.capacity,
            evictions: tier.evictions, hits: tier.hits)
    }
}

extension DaemonStatus.Clients {
    fileprivate init(_ proxy: ProxyStatistics) {
        self.init()
        self.openConnections = proxy.connectionsOpen
        self.connections = proxy.connections
        self.connectionsRefused = proxy.connectionsRefused
        self.connectionsDelayed = proxy.connectionsWaited
        self.acceptsFailed = proxy.acceptsFailed
        self.requests = proxy.requests
        self.bytesReceived = proxy.bytesIn
        self.bytesSent = proxy.bytesOut
        self.openTunnels = proxy.tunnelsOpen
        self.tunnels = proxy.tunnels
        self.answersCut = proxy.cut
        self.ownAnswers = Dictionary(
            uniqueKeysWithValues: proxy.ownAnswers.map { ("\($0.key.rawValue)", $0.value) })
    }
}

extension DaemonStatus.Origins {
    fileprivate init(_ sessions: [TransferStatistics]) {
        self.init()
        for session in sessions {
            self.openConnections &+= UInt64(clamping: session.openConnections)
            self.connections &+= session.connectionsOpened
            self.openFetches &+= UInt64(clamping: session.openTransfers)
            self.fetches &+= session.transfersStarted
            self.lookupsDelayed &+= session.lookupsDelayed
        }
    }
}
