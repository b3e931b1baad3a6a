import Synchronization

/// Removals of all that is stored, or of all that is younger than a moment, that have begun and are not
/// over.
///
/// ```
/// began ─▶ ended
///   └────▶ cut short, as the store closes ─▶ told
/// ```
///
/// What such a walk would still have removed is in the file, and nobody knows what it is. So who waits
/// for one that is cut short is told once the lock file says that the file must not be served. Who comes
/// later still gets no answer but that it is done, and finds in ``hasLost`` that it is not.
struct WalksUnderWay {
    private var count = 0
    private var cutShort: [@Sendable () -> Void] = []
    private var isOver = false
    /// Something was to be removed when it could neither be done nor noted any more.
    private(set) var hasLost = false

    /// Whether there is one, or was one that was cut short.
    var isAny: Bool { self.count > 0 }

    mutating func began() { self.count += 1 }

    mutating func ended() { self.count -= 1 }

    /// One cannot go on: whether who waits for it is to be told at once.
    mutating func isTold(_ tell: @escaping @Sendable () -> Void) -> Bool {
        if self.isOver {
            self.hasLost = true
        } else {
            self.cutShort.append(tell)
        }
        return self.isOver
    }

    /// A removal came when the store took nothing more.
    mutating func lost() { self.hasLost = true }

    /// The lock file is about to say what is owed, and will say nothing more; gives who waits for it.
    mutating func end() -> [@Sendable () -> Void] {
        self.isOver = true
        defer { self.cutShort = [] }
        return self.cutShort
    }
}

extension DiskCore {
    /// A walk that removes cannot go on: the store takes nothing more.
    func walkCutShort(_ tell: @escaping @Sendable () -> Void) {
        if self.walks.withLock({ $0.isTold(tell) }) { tell() }
    }
}

extension DiskWriter {
    /// Owes what walks would still have removed that are under way at the end.
    mutating func oweWalks() {
        let (isOwed, untold) = self.core.walks.withLock { ($0.isAny, $0.end()) }
        if isOwed { self.recordInLockFile() }
        for tell in untold { tell() }
    }
}
