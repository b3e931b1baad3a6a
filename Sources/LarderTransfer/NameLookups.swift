/// Which transfers of a loop may have a name looked up, and which wait for that.
///
/// ```
/// take ─▶ place ─▶ found | ended | its time is over
///   └─▶ waiting ─▶ admitted, with a place or because the name is known by now
/// ```
///
/// libcurl starts a thread for each look-up, which lives until getaddrinfo(3) returns, whatever became
/// of the transfer. So a place is not given back by one that was given up: it is free again when the
/// look-up can be supposed to be over.
///
/// A value: who wants a name and what became of it go in, who may go on comes out.
struct NameLookups {
    private struct Place {
        let name: String
        let until: MonotonicTime
    }

    /// At a time; 0: any number.
    private let limit: Int
    /// How long a look-up can take.
    private let lifetime: Duration
    private var places: [UInt64: Place] = [:]
    /// In the order in which their times end, with those that were given back.
    private var ends: [(id: UInt64, until: MonotonicTime)] = []
    /// Up to here they are over.
    private var firstEnd = 0
    private var waiting: [String: [UInt64]] = [:]
    /// Names that wait, the next one first, with such as nobody waits for any more.
    private var line: [String] = []
    /// Names that wait and have been found.
    private var known: Set<String> = []

    init(limit: Int, lifetime: Duration) {
        self.limit = limit
        self.lifetime = lifetime
    }

    /// Whether any transfer waits.
    var isWaitedFor: Bool { !self.waiting.isEmpty }

    /// How many places are taken.
    var count: Int { self.places.count }

    /// Whether `admit` would let anybody go on, whatever the time.
    var mayAdmit: Bool {
        self.isWaitedFor && (!self.known.isEmpty || self.places.count < self.limit)
    }

    /// When it may let somebody go on at the latest; nil where nobody waits.
    var next: MonotonicTime? {
        guard self.isWaitedFor, self.firstEnd < self.ends.count else { return nil }
        return self.ends[self.firstEnd].until
    }

    /// Asks for a place for the look-up of a name; where it gets none, the transfer waits.
    mutating func take(_ name: String, for id: UInt64, _ now: MonotonicTime) -> Bool {
        guard self.limit > 0, self.places[id] == nil else { return true }
        self.dropEnded(now)
        if self.places.count < self.limit, !self.isWaitedFor {
            self.hold(id, name, now)
            return true
        }
        if self.waiting[name] == nil { self.line.append(name) }
        self.waiting[name, default: []].append(id)
        return false
    }

    /// A transfer's look-up has found addresses: who waits for the same name needs none.
    mutating func found(_ id: UInt64) {
        guard let place = self.places.removeValue(forKey: id) else { return }
        if self.waiting[place.name] != nil { self.known.insert(place.name) }
    }

    /// A transfer's look-up has ended without any, or was not needed.
    mutating func ended(_ id: UInt64) {
        self.places[id] = nil
    }

    /// A transfer that waits for a name was given up.
    mutating func leave(_ name: String, _ id: UInt64) {
        guard var ids = self.waiting[name] else { return }
        ids.removeAll { $0 == id }
        self.waiting[name] = ids.isEmpty ? nil : ids
        if ids.isEmpty { self.known.remove(name) }
        // Of those that left at once nobody may come to take them out for long.
        guard self.line.count > 2 * self.waiting.count + 64 else { return }
        var seen: Set<String> = []
        self.line.removeAll { self.waiting[$0] == nil || !seen.insert($0).inserted }
    }

    /// Who may go on now.
    ///
    /// - Returns: those that have a place, and those whose names are known.
    mutating func admit(_ now: MonotonicTime) -> (placed: [UInt64], known: [UInt64]) {
        self.dropEnded(now)
        let known = self.known.flatMap { self.waiting.removeValue(forKey: $0) ?? [] }
        self.known = []
        var placed: [UInt64] = []
        var taken = 0
        while self.places.count < self.limit, taken < self.line.count {
            let name = self.line[taken]
            taken += 1
            guard var ids = self.waiting[name] else { continue }
            let id = ids.removeFirst()
            self.hold(id, name, now)
            placed.append(id)
            self.waiting[name] = ids.isEmpty ? nil : ids
            // Behind the other names, should this one not be found.
            if !ids.isEmpty { self.line.append(name) }
        }
        self.line.removeFirst(taken)
        return (placed, known.sorted())
    }

    // MARK: Steps

    private mutating func hold(_ id: UInt64, _ name: String, _ now: MonotonicTime) {
        let until = now + self.lifetime
        self.places[id] = Place(name: name, until: until)
        self.ends.append((id, until))
    }

    private mutating func dropEnded(_ now: MonotonicTime) {
        while self.firstEnd < self.ends.count {
            let (id, until) = self.ends[self.firstEnd]
            if let place = self.places[id], place.until == until {
                guard until <= now else { break }
                self.places[id] = nil
            }
            self.firstEnd += 1
        }
        // Each is moved once, on the whole.
        guard self.firstEnd >= 64, 2 * self.firstEnd >= self.ends.count else { return }
        self.ends.removeFirst(self.firstEnd)
        self.firstEnd = 0
    }
}
