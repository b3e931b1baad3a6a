import Dispatch
package import LarderCredentials
package import LarderDisk
package import LarderHTTP
package import LarderSession
package import LarderState
import LarderStore
package import LarderTransfer

/// A session with everything it needs, put together.
///
/// Whoever opens it closes it, once its last exchange has ended.
package final class OpenSession: Sendable {
    package let kind: SessionBlueprint.Kind
    /// What belongs to all principals: where a session is not split, all there is.
    package let common: PrincipalSession
    /// nil: its cookies and credentials are in memory alone.
    package let state: StateFile?
    /// Why that which is configured is done without.
    package let missingState: StateError?
    private let principals: PrincipalTable
    private let rules: SessionRules
    /// nil: it keeps no transfers.
    private let desk: TransferDesk?
    /// Where its disk tier lies; nil where it has none, or it could not be opened at first.
    package let directory: String?
    private let store: any ObjectStore
    private let report: @Sendable (EngineEvent) -> Void
    /// The lower tier of the store; nil where there is none, or it could not be opened at first.
    private let openedDisk: DiskStore?
    /// In its place: what opens it when that can be done.
    private let late: LateDisk?
    /// Its way to origins, for trials beside it.
    package let upstream: CurlUpstream

    package var session: Session { self.common.session }
    /// The lower tier of the store, where it is open.
    private var disk: DiskStore? { self.openedDisk ?? self.late?.disk }

    /// Opens what the blueprint names.
    ///
    /// Waits for a few reads of the disk. A disk tier that cannot be had is reported, done without
    /// and tried again later, as a cache that cannot keep is still a proxy; only one that belongs to
    /// another process is an error, because its owner would have to be asked.
    ///
    /// - Parameters:
    ///   - yieldsDisk: do without the disk tier also where another process owns it.
    ///   - mayGoOn: asked now and then while a cache file is looked at whole; where it answers false,
    ///     nothing is opened.
    ///   - report: hears what a person should know; any thread, must not block.
    package init(
        _ blueprint: SessionBlueprint, clock: any WallClock, timers: any Timers,
        yieldsDisk: Bool = false, mayGoOn: () -> Bool = { true },
        report: @escaping @Sendable (EngineEvent) -> Void
    ) throws(EngineError) {
        var disk: DiskStore?
        var late: LateDisk?
        var directory: String?
        if blueprint.kind.isPersistent, let configuration = blueprint.disk,
            configuration.capacity > .zero
        {
            (disk, late) = try Self.openDisk(
                configuration, clock: clock, yieldsDisk: yieldsDisk, mayGoOn: mayGoOn,
                report: report)
            if disk != nil { directory = configuration.directory }
        }
        // After the cache, which more sessions have: its owner is the one to be named.
        let state: SessionState
        do throws(EngineError) {
            state = try SessionState.open(
                blueprint.kind.isPersistent ? blueprint.state : nil, now: clock.now(),
                yields: yieldsDisk, report: report)
        } catch {
            Self.close(disk)
            throw error
        }
        if blueprint.cookies != nil, PublicSuffixList.isMissing { report(.withoutPublicSuffixes) }
        let logins = ParentLogins()
        do throws(TransferError) {
            self.upstream = try CurlUpstream(blueprint.transfer.revealing(by: logins)) { limit in
                report(.transfersWait(limit))
            }
        } catch {
            Self.close(disk)
            throw .transfer(error)
        }
        self.store = TieredStore(memory: MemoryStore(blueprint.memory), disk: disk ?? late)
        self.openedDisk = disk
        self.report = report
        self.late = late
        self.kind = blueprint.kind
        self.directory = directory
        self.state = state.file
        self.missingState = state.missing
        let desk = Self.desk(blueprint.kind, state.file, clock: clock, timers: timers, report)
        self.desk = desk
        let factory = PrincipalFactory(
            rules: SessionRules(blueprint), state: state, store: self.store,
            upstream: self.upstream, clock: clock, timers: timers, desk: desk,
            report: report)
        self.rules = factory.rules
        let common = factory.make("", beside: nil)
        self.common = common
        self.principals = PrincipalTable(make: { factory.make($0, beside: common) }) { made in
            // They may have changed after it was made and before it could be found.
            factory.rules.apply(to: made, at: clock.now())
            guard state.file != nil else { return made.begin() }
            Task {
                // Rules look for credentials in the part of all, too.
                if made !== common { await common.opened() }
                await made.open(at: clock.now())
            }
        }
        logins.credentials = self.common.credentials
        self.principals.adopt(self.common)
    }

    /// Closes what was opened for nothing: a file that is left open counts as one of a crash.
    private static func close(_ disk: DiskStore?) {
        guard let disk else { return }
        let isClosed = DispatchSemaphore(value: 0)
        disk.close { isClosed.signal() }
        isClosed.wait()
    }

    private static func openDisk(
        _ configuration: DiskConfiguration, clock: any WallClock, yieldsDisk: Bool,
        mayGoOn: () -> Bool, report: @escaping @Sendable (EngineEvent) -> Void
    ) throws(EngineError) -> (DiskStore?, LateDisk?) {
        do throws(StoreError) {
            let disk = try DiskStore.open(
                configuration, clock: { clock.now() }, mayGoOn: mayGoOn
            ) { event in
                report(.disk(event))
            }
            return (disk, nil)
        } catch {
            if error.code == .cancelled || error.code == .untrusted { throw .store(error) }
            if case .inUse = error.code {
                if !yieldsDisk { throw .store(error) }
                report(.withoutDisk(error))
                return (nil, nil)
            }
            report(.withoutDisk(error))
            let late = LateDisk(configuration, after: error, clock: { clock.now() }) {
                report(.disk($0))
            }
            return (nil, late)
        }
    }

    /// Writes the disk tier's file anew without holes; nil where there is no disk tier.
    ///
    /// Throws `StoreError`. The exchanges go on meanwhile.
    ///
    /// - Parameter progress: bytes copied, and of how many at most; must not block.
    package func compact(
        progress: @escaping @Sendable (UInt64, UInt64) -> Void
    ) async throws -> CompactionReport? {
        guard let disk = self.disk else { return nil }
        return try await withCheckedContinuation { continuation in
            disk.compact(progress: progress) { continuation.resume(returning: $0) }
        }.get()
    }

    /// Takes out of the disk tier what a verification of its file has found, where it is still so.
    ///
    /// - Returns: what was taken out; nil where the session has no disk tier.
    package func mend(_ damage: [DiskDamage]) async -> [DiskDamage]? {
        guard let disk = self.disk else { return nil }
        return await withCheckedContinuation { continuation in
            disk.mend(damage) { continuation.resume(returning: $0) }
        }
    }

    // MARK: Principals

    /// The part of a principal, which is made where there is none; nil once the session is closed.
    package func part(of principal: String) -> PrincipalSession? {
        self.principals.session(of: principal)
    }

    package func session(of principal: String) -> Session? { self.part(of: principal)?.session }

    /// The principals in memory, by name; the part of all is among them.
    package var residentPrincipals: [PrincipalSession] { self.principals.all }

    /// What all principals did together.
    package func counters() -> SessionCounters { self.principals.counters }

    /// Puts other rules into force, for exchanges of all principals that begin from now on.
    package func follow(_ blueprint: SessionBlueprint, at now: Timestamp) {
        self.rules.follow(blueprint)
        for principal in self.principals.all { self.rules.apply(to: principal, at: now) }
    }

    // MARK: Transfers

    /// The transfers that the session keeps, the oldest first; none unless it is a background session.
    ///
    /// Those are written down when this returns, and outlive a kill, unless it was reported that they cannot
    /// be.
    package func transfers() async -> [TransferFact] { await self.desk?.writtenFacts() ?? [] }

    /// Ends a transfer, and forgets it: a client that receives it goes on receiving.
    ///
    /// - Returns: whether there was one with this number.
    package func cancelTransfer(_ id: UInt64) -> Bool { self.desk?.cancel(id) ?? false }

    /// Names who knows what those may have who asked for transfers and are not connected any more; until then
    /// none is asked for again.
    ///
    /// - Parameter leave: gives nil: not this target. Asked each time that a transfer is asked for again; any
    ///   thread, must not block.
    package func askForTransfers(
        _ leave: @escaping @Sendable (Requester, TargetURI) -> RequesterLeave?
    ) {
        self.desk?.ask(leave)
    }

    /// Goes on with the transfers that were under way when the session was closed, or its process died.
    package func takeUpTransfers() async {
        guard let desk = self.desk, let state = self.state else { return }
        do throws(StateError) {
            for principal in try await state.principals() {
                await self.takeUpTransfers(of: principal, desk, state)
            }
        } catch {
            self.report(.transfer(.notTakenUp(error)))
        }
    }

    private func takeUpTransfers(
        of principal: String, _ desk: TransferDesk, _ state: StateFile
    ) async {
        do throws(StateError) {
            let transfers = try await state.transfers(of: principal)
            guard !transfers.isEmpty, let part = self.part(of: principal) else { return }
            await part.opened()
            desk.takeUp(transfers, in: part)
        } catch {
            self.report(.transfer(.notTakenUp(error)))
        }
    }

    private static func desk(
        _ kind: SessionBlueprint.Kind, _ state: StateFile?, clock: any WallClock,
        timers: any Timers, _ report: @escaping @Sendable (EngineEvent) -> Void
    ) -> TransferDesk? {
        guard kind == .background else { return nil }
        let journal = state.map {
            TransferJournal($0) { report(.transfer(.notWritten($0))) }
        }
        return TransferDesk(clock: clock, timers: timers, journal: journal) {
            report(.transfer($0))
        }
    }

    // MARK: The end

    /// Breaks off what is still under way, finishes what was committed, and closes every file.
    ///
    /// Cookies of the session end with it; what outlives it is on the disk when this returns.
    package func close() async {
        // Before their fetches end: that is no reason to ask for them again.
        await self.desk?.close()
        await withCheckedContinuation { continuation in
            self.upstream.shutdown { continuation.resume() }
        }
        await self.principals.close()
        await self.state?.close()
        await withCheckedContinuation { continuation in
            self.store.close { continuation.resume() }
        }
    }
}

/// What an engine has to say to a person, each thing once.
package enum EngineEvent: Sendable {
    case disk(DiskEvent)
    /// The session goes on in memory alone.
    case withoutDisk(StoreError)
    case state(StateEvent)
    /// Its cookies and credentials are in memory alone.
    case withoutState(StateError)
    case cookies(principal: String, CookieEvent)
    /// Changes of its credentials are not being kept.
    case credentialsNotKept(principal: String, CredentialStorageError)
    /// There is no list of public suffixes: cookies are kept for single hosts.
    case withoutPublicSuffixes
    /// So much is under way that fetches wait.
    case transfersWait(TransferLimit)
    case transfer(TransferEvent)
}

/// Why a session could not be opened.
package enum EngineError: Error, Sendable {
    case store(StoreError)
    case state(StateError)
    case transfer(TransferError)
}

extension EngineError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .store(let error): "\(error)"
        case .state(let error): "\(error)"
        case .transfer(let error): "\(error)"
        }
    }
}
