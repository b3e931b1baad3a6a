import LarderLMDB

extension Schema {
    /// The format that the file says it has; nil where it says nothing that can be understood.
    ///
    /// Where it says so has never changed, whatever else has.
    func readFormat(_ transaction: borrowing ReadTransaction) throws(LMDBError) -> UInt64? {
        let key = StoreMeta.key
        let format: UInt64?? = try transaction.get(self.meta, key.span) { $0.littleEndian(8) }
        return format ?? nil
    }
}

extension StoreError {
    /// For a file that another release has written and this one cannot read.
    init(ofFormat format: UInt64, path: String) {
        let isNewer = format > StoreMeta.format
        self.init(
            .damaged, path: path,
            cause: "a cache of format \(format), and this release knows format \(StoreMeta.format)",
            remedy: isNewer
                ? "look with the release that wrote it"
                : "\"larder serve\" sets it aside and begins a new one")
    }
}
