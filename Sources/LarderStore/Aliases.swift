/// The lower ids of entries that memory has evicted, for those who hold their memory ids still.
struct Aliases: Sendable {
    /// What became of an id of the memory tier that is no longer there.
    enum Meaning: Equatable {
        case lower(ObjectID)
        /// There certainly is no copy of it.
        case nothing
        /// Too long ago to say.
        case forgotten
    }

    private static let limit = 1024
    private var order: [ObjectID] = []
    private var next = 0
    private var meanings: [ObjectID: ObjectID] = [:]
    /// No id up to here is known any more for certain.
    private var floor = ObjectID(rawValue: 0)

    mutating func note(_ id: ObjectID, is lowerID: ObjectID) {
        guard self.meanings.updateValue(lowerID, forKey: id) == nil else { return }
        if self.order.count < Self.limit {
            self.order.append(id)
            return
        }
        let oldest = self.order[self.next]
        self.meanings.removeValue(forKey: oldest)
        self.floor = max(self.floor, oldest)
        self.order[self.next] = id
        self.next = (self.next + 1) % Self.limit
    }

    func meaning(of id: ObjectID) -> Meaning {
        if let lowerID = self.meanings[id] { return .lower(lowerID) }
        return id <= self.floor ? .forgotten : .nothing
    }
}
