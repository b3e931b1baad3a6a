import LarderHTTP
import LarderPolicy
import LarderStore

/// Where what an answer stands on is found again.
enum StandingPlace: Sendable {
    /// In memory, as long as nothing under its key changes.
    case resident(ResidentMark)
    /// By a look-up, as long as that finds what it did.
    case found(FoundPlace)
}

/// What a look-up has found, and which of it an answer is made from.
struct FoundPlace: Sendable {
    /// More variants than this are decided on anew each time: their heads would be held here.
    static let mostObjects = 4

    private struct Found: Sendable {
        let id: ObjectID
        let head: StoredHead
    }

    private let found: [Found]
    private let index: Int

    init(of objects: [StoredObject], _ index: Int) {
        self.found = objects.map { Found(id: $0.id, head: $0.head) }
        self.index = index
    }

    /// The one that the answer is made from, where a look-up has found the same, in the same order.
    func object(among objects: [StoredObject]) -> StoredObject? {
        guard objects.count == self.found.count else { return nil }
        for place in objects.indices {
            guard objects[place].id == self.found[place].id,
                objects[place].head == self.found[place].head
            else { return nil }
        }
        return objects[self.index]
    }

    /// The bytes of the fields that it holds.
    var fieldBytes: Int { self.found.reduce(0) { $0 + $1.head.fields.bytes.count } }
}
