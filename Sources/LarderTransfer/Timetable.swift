/// Something with a moment at which it wants to be looked at.
///
/// Not `Sendable`: belongs to the thread of its timetable.
protocol Timed: AnyObject {
    /// Meaningful while it is in a timetable.
    var moment: MonotonicTime { get set }
    /// Its place in the timetable; nil outside. The timetable's alone to write.
    var place: Int? { get set }
}

/// What is to happen when: a binary heap whose members know their places, so that a moment is put
/// off, brought forward or taken out in a few steps.
struct Timetable<Entry: Timed> {
    private var heap: [Entry] = []

    /// Whose moment comes first.
    var first: Entry? { self.heap.first }

    /// Puts an entry in, or gives one that is in another moment.
    mutating func enter(_ entry: Entry, at moment: MonotonicTime) {
        guard let place = entry.place, self.heap.indices.contains(place) else {
            entry.moment = moment
            entry.place = self.heap.count
            self.heap.append(entry)
            self.rise(from: self.heap.count - 1)
            return
        }
        let isEarlier = moment < entry.moment
        entry.moment = moment
        if isEarlier { self.rise(from: place) } else { self.sink(from: place) }
    }

    mutating func leave(_ entry: Entry) {
        guard let place = entry.place, self.heap.indices.contains(place) else { return }
        entry.place = nil
        let last = self.heap.removeLast()
        guard place < self.heap.count else { return }  // It was the last.
        self.put(last, at: place)
        self.rise(from: place)
        self.sink(from: last.place ?? place)
    }

    private mutating func put(_ entry: Entry, at place: Int) {
        self.heap[place] = entry
        entry.place = place
    }

    private mutating func rise(from start: Int) {
        var place = start
        let entry = self.heap[place]
        while place > 0 {
            let parent = (place - 1) / 2
            guard entry.moment < self.heap[parent].moment else { break }
            self.put(self.heap[parent], at: place)
            place = parent
        }
        self.put(entry, at: place)
    }

    private mutating func sink(from start: Int) {
        var place = start
        let entry = self.heap[place]
        while true {
            var child = 2 * place + 1
            guard child < self.heap.count else { break }
            if child + 1 < self.heap.count, self.heap[child + 1].moment < self.heap[child].moment {
                child += 1
            }
            guard self.heap[child].moment < entry.moment else { break }
            self.put(self.heap[child], at: place)
            place = child
        }
        self.put(entry, at: place)
    }
}
