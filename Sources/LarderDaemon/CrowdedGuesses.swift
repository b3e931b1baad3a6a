import LarderProxy

/// Guesses that wait for a thread when one more comes and there is no room.
///
/// Each costs a hash, and whoever sends many would else have all the room: the newcomer takes the place
/// of one of whoever has most of it. A value.
enum CrowdedGuesses {
    struct Waiting<Key> {
        var key: Key
        var source: ClientSource
        /// Which came when.
        var number: UInt64
    }

    /// The one that gives way: the oldest of the source that has most; nil where the newcomer's has as
    /// many itself.
    static func givingWay<Key>(
        _ waiting: [Waiting<Key>], to newcomer: ClientSource
    ) -> Key? {
        let counts = waiting.reduce(into: [:]) { $0[$1.source, default: 0] += 1 }
        guard let most = counts.values.max(), counts[newcomer, default: 0] < most else {
            return nil
        }
        return waiting.filter { counts[$0.source] == most }.min { $0.number < $1.number }?.key
    }
}
