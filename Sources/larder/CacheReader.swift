import LarderConfig

/// The cache of a session on disk.
enum CacheReader {
    /// Opens the cache for looking; nil where there is none yet.
    static func open(directory: String, session: SessionSettings) throws -> (any CacheReading)? {
        nil
    }
}
