/// A place in a cache file at which a verification has found something wrong.
///
/// As the disk tier names it: this module knows no more of it.
package struct DamageRecord: Codable, Sendable, Equatable {
    /// One word.
    package var kind: String
    /// The hash of the entry's key, in two halves.
    package var high: UInt64
    package var low: UInt64
    package var id: UInt64
    package var number: UInt64

    /// How many a request carries at most, so that its line stays short.
    package static let mostInRequest = 512

    package init(kind: String, high: UInt64, low: UInt64, id: UInt64, number: UInt64) {
        self.kind = kind
        self.high = high
        self.low = low
        self.id = id
        self.number = number
    }
}
