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
    private var heap: [Entry] = []

    /// Whose moment comes first.
    var first: Entry? { self.heap.first }

    /// Puts an entry in, or gives one that is in another moment.
    func enter(_ entry: Entry, at moment: MonotonicTime) {
        var heap = exchange(&self.heap, with: [])
        defer { self.heap = heap }
        guard let place = entry.place, heap.indices.contains(place) else {
            entry.moment = moment
            entry.place = heap.count
            heap.append(entry)
            Self.rise(from: heap.count - 1, in: &heap)
            return
        }
        let isEarlier = moment < entry.moment
        entry.moment = moment
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
        let last = heap.removeLast()
        guard place < heap.count else { return }  // It was the last.
        Self.put(last, at: place, in: &heap)
        Self.rise(from: place, in: &heap)
        Self.sink(from: last.place ?? place, in: &heap)
    }

    private static func put(_ entry: Entry, at place: Int, in heap: inout [Entry]) {
        heap[place] = entry
        entry.place = place
    }

    private static func rise(from start: Int, in heap: inout [Entry]) {
        var place = start
        let entry = heap[place]
        while place > 0 {
            let parent = (place - 1) / 2
            guard entry.moment < heap[parent].moment else { break }
            Self.put(heap[parent], at: place, in: &heap)
            place = parent
        }
        Self.put(entry, at: place, in: &heap)
    }

    private static func sink(from start: Int, in heap: inout [Entry]) {
        var place = start
        let entry = heap[place]
        while true {
            var child = 2 * place + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].moment < heap[child].moment {
                child += 1
            }
            guard heap[child].moment < entry.moment else { break }
            Self.put(heap[child], at: place, in: &heap)
            place = child
        }
        Self.put(entry, at: place, in: &heap)
    }
}
