/// The listing of `larder cache list`, for people and for tools that take columns.
struct CacheListText {
    private var table: Table?

    /// - Parameter width: of the terminal; nil where there is none: then columns are not aligned, and
    ///   numbers are bytes, seconds and times as they are.
    init(width: Int?) {
        guard let width else { return }
        self.table = Table(
            [
                .init(title: "URL", isElastic: true), .init(title: "SIZE", isNumber: true),
                .init(title: "AGE", isNumber: true), .init(title: "FRESH FOR", isNumber: true),
                .init(title: "HITS", isNumber: true), .init(title: "TIER"),
            ], width: width)
    }

    /// What stands above unaligned columns.
    static let header = "URL METHOD STATUS SIZE AGE FRESH-FOR LAST-USED HITS TIER"

    /// Takes a row; answers the lines that can be written now.
    mutating func add(_ row: CacheRow) -> [String] {
        guard self.table != nil else { return [Self.columns(row)] }
        let method = row.method == "GET" ? "" : "\(row.method) "
        return self.table?.add([
            Printable.text(method + row.url), Human.size(row.bytes),
            Human.time(milliseconds: row.ageMilliseconds),
            row.isFresh ? Human.time(milliseconds: row.freshForMilliseconds) : "stale",
            String(row.hits),
            row.tier.rawValue + (row.partial.map { ", \($0.text)" } ?? ""),
        ]) ?? []
    }

    /// The lines that wait for others to be aligned with.
    mutating func settle() -> [String] { self.table?.settle() ?? [] }

    mutating func finish() -> [String] { self.table?.finish() ?? [] }

    /// One space between columns, and none inside: times in seconds, a partial response's tier with
    /// `,partial` behind it.
    private static func columns(_ row: CacheRow) -> String {
        let url = Printable.text(row.url)
        let word =
            url.utf8.contains(0x20) ? url.split(separator: " ").joined(separator: "%20") : url
        let used = row.lastUsedMicroseconds / 1_000_000
        return "\(word) \(row.method) \(row.status) \(row.bytes) \(row.ageMilliseconds / 1000) "
            + "\(row.freshForMilliseconds / 1000) \(used) \(row.hits) \(row.tier.rawValue)"
            + (row.partial == nil ? "" : ",partial")
    }
}
