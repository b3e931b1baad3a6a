/// What a store holds and has done.
package struct StoreStatistics: Sendable, Equatable, Codable {
    package struct Tier: Sendable, Equatable, Codable {
        package var objects: UInt64 = 0
        /// Bodies and heads, as they count towards the capacity.
        package var bytes: UInt64 = 0
        package var capacity: UInt64 = 0
        /// Since it was opened, as are the hits.
        package var evictions: UInt64 = 0
        package var hits: UInt64 = 0

        package init() {}
    }

    package var memory: Tier
    package var disk: Tier?
    /// The size of the file that the disk tier lives in; 0 where there is none.
    package var fileBytes: UInt64
    /// Responses that could not be stored because the disk failed, was full or was too slow.
    package var storeFailures: UInt64
    /// Entries dropped because a checksum did not match.
    package var damaged: UInt64

    package init() {
        self.memory = Tier()
        self.disk = nil
        self.fileBytes = 0
        self.storeFailures = 0
        self.damaged = 0
    }
}
