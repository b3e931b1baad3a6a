/// The slots of a `GhostTable`, all zero at first; what was never written takes no memory.
///
/// A table of 8 MiB, zeroed as a whole, was a sixth of the resident memory of a proxy that had
/// stored nothing.
struct GhostSlots: Sendable {
    /// Slots that are made together, when the first of them is written.
    static let pieceSize = 992

    let count: Int
    /// Empty ones are all zero.
    private var pieces: [[UInt32]]

    init(count: Int) {
        self.count = max(0, count)
        self.pieces = Array(
            repeating: [], count: (self.count + Self.pieceSize - 1) / Self.pieceSize)
    }

    subscript(_ index: Int) -> UInt32 {
        get {
            let (piece, place) = index.quotientAndRemainder(dividingBy: Self.pieceSize)
            return self.pieces[piece].isEmpty ? 0 : self.pieces[piece][place]
        }
        set {
            let (piece, place) = index.quotientAndRemainder(dividingBy: Self.pieceSize)
            if self.pieces[piece].isEmpty {
                guard newValue != 0 else { return }
                self.pieces[piece] = Array(repeating: 0, count: Self.pieceSize)
            }
            self.pieces[piece][place] = newValue
        }
    }

    /// How many satisfy `isWanted`, of those that are not zero.
    func count(where isWanted: (UInt32) -> Bool) -> Int {
        self.pieces.reduce(0) { $0 + $1.count { $0 != 0 && isWanted($0) } }
    }

    /// How many have memory.
    var resident: Int { self.pieces.reduce(0) { $0 + $1.count } }
}
