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
///
/// A class, as its members can be in one only. Not `Sendable`: used on one thread.
final class Timetable<Entry: Timed> {
    /// The moment beside its entry: on the way through the heap no entry is looked at that stays.
    private struct Slot {
        var moment: MonotonicTime
        let entry: Entry
    }

    private var heap: [Slot] = []

    /// Whose moment comes first.
    var first: Entry? { self.heap.first?.entry }

    /// Puts an entry in, or gives one that is in another moment.
    func enter(_ entry: Entry, at moment: MonotonicTime) {
        var heap = exchange(&self.heap, with: [])
        defer { self.heap = heap }
        entry.moment = moment
        guard let place = entry.place, heap.indices.contains(place) else {
            heap.append(Slot(moment: moment, entry: entry))
            entry.place = heap.count - 1
            Self.rise(from: heap.count - 1, in: &heap)
            return
        }
        let isEarlier = moment < heap[place].moment
        heap[place].moment = moment
        if isEarlier {
            Self.rise(from: place, in: &heap)
        } else {
            Self.sink(from: place, in: &heap)
        }
    }

    func leave(_ entry: Entry) {
        var heap = exchange(&self.heap, with: [])
        defer { self.heap = heap }
        guard let place = entry.place, heap.indices.contains(place) else { return }
        entry.place = nil
        let last = heap.count - 1
        if place < last { Self.swap(place, last, in: &heap) }
        heap.removeLast()
        guard place < last else { return }
        // The last one is there now, and belongs further up or further down.
        if place > 0, heap[place].moment < heap[Self.parent(of: place)].moment {
            Self.rise(from: place, in: &heap)
        } else {
            Self.sink(from: place, in: &heap)
        }
    }

    private static func parent(of place: Int) -> Int { (place - 1) / 2 }

    /// Exchanges two slots, of which the entry of the first is told its new place by whoever moves it on.
    private static func swap(_ place: Int, _ other: Int, in heap: inout [Slot]) {
        heap.swapAt(place, other)
        heap[place].entry.place = place
    }

    private static func rise(from start: Int, in heap: inout [Slot]) {
        var place = start
        while place > 0 {
            let parent = Self.parent(of: place)
            guard heap[place].moment < heap[parent].moment else { break }
            Self.swap(place, parent, in: &heap)
            place = parent
        }
        if place != start { heap[place].entry.place = place }
    }

    private static func sink(from start: Int, in heap: inout [Slot]) {
        var place = start
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].moment < heap[child].moment {
                child += 1
            }
            guard heap[child].moment < heap[place].moment else { break }
            Self.swap(place, child, in: &heap)
            place = child
        }
        if place != start { heap[place].entry.place = place }
    }
}
