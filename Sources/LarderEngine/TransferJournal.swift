import LarderState
import Synchronization

/// Writes down which transfers are not over, behind the back of whoever begins and ends them.
///
/// Changes that wait for a write come together; what begins and ends meanwhile is never written. What could
/// not be written is tried again with the next change.
final class TransferJournal: Sendable {
    private struct Place: Hashable {
        let principal: String
        let id: UInt64
    }

    private enum Step {
        case write([Place: KeptTransfer?])
        case tell([CheckedContinuation<Void, Never>])
    }

    private struct State {
        /// nil: it is over.
        var pending: [Place: KeptTransfer?] = [:]
        /// What lies there, as far as is known.
        var written: Set<Place> = []
        var isWriting = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var hasReported = false

        /// What is to be written next.
        ///
        /// Where that is all, or the file did not take it, nobody writes any more, and those are told who
        /// wait for it.
        mutating func next(isRefused: Bool) -> Step {
            guard !isRefused, !self.pending.isEmpty else {
                self.isWriting = false
                defer { self.waiting = [] }
                return .tell(self.waiting)
            }
            defer { self.pending = [:] }
            return .write(self.pending)
        }
    }

    private let file: StateFile
    private let report: @Sendable (StateError) -> Void
    private let state = Mutex(State())

    /// - Parameter report: hears of the first failure of each row of them.
    init(_ file: StateFile, report: @escaping @Sendable (StateError) -> Void) {
        self.file = file
        self.report = report
    }

    func begun(_ transfer: KeptTransfer, of principal: String) {
        self.note(Place(principal: principal, id: transfer.id), transfer)
    }

    func over(_ id: UInt64, of principal: String) {
        self.note(Place(principal: principal, id: id), nil)
    }

    /// It was found there.
    func found(_ id: UInt64, of principal: String) {
        self.state.withLock {
            _ = $0.written.insert(Place(principal: principal, id: id))
        }
    }

    /// Returns when all changes until now were written, or could not be; tries those again that could not be
    /// before.
    func flush() async {
        let begins = self.state.withLock { state in
            guard !state.isWriting, !state.pending.isEmpty else { return false }
            state.isWriting = true
            return true
        }
        if begins { return await self.write() }
        await withCheckedContinuation { continuation in
            let isIdle = self.state.withLock { state in
                guard state.isWriting else { return true }
                state.waiting.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }

    private func note(_ place: Place, _ transfer: KeptTransfer?) {
        let begins = self.state.withLock { state in
            if transfer == nil, !state.isWriting, !state.written.contains(place) {
                // It never was written, and need not be.
                state.pending[place] = nil
                return false
            }
            state.pending.updateValue(transfer, forKey: place)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins { Task { await self.write() } }
    }

    private func write() async {
        var isRefused = false
        while true {
            let batch: [Place: KeptTransfer?]
            switch self.state.withLock({ $0.next(isRefused: isRefused) }) {
            case .write(let changes): batch = changes
            case .tell(let waiting):
                for continuation in waiting { continuation.resume() }
                return
            }
            for (principal, changes) in Dictionary(grouping: batch, by: \.key.principal) {
                do throws(StateError) {
                    try await self.file.keep(
                        changes.compactMap(\.value),
                        forgetting: changes.filter { $0.value == nil }.map(\.key.id),
                        of: principal)
                    self.wrote(changes.map { ($0.key, $0.value != nil) })
                } catch {
                    isRefused = true
                    self.failed(error, changes.map { ($0.key, $0.value) })
                }
            }
        }
    }

    private func wrote(_ places: [(Place, isThere: Bool)]) {
        self.state.withLock { state in
            state.hasReported = false
            for (place, isThere) in places {
                if isThere { state.written.insert(place) } else { state.written.remove(place) }
            }
        }
    }

    private func failed(_ error: StateError, _ changes: [(Place, KeptTransfer?)]) {
        let isFirst = self.state.withLock { state in
            // What has changed since counts.
            for (place, transfer) in changes where state.pending[place] == nil {
                state.pending.updateValue(transfer, forKey: place)
            }
            defer { state.hasReported = true }
            return !state.hasReported
        }
        if isFirst { self.report(error) }
    }
}
