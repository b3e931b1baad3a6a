/// The listing of `larder cache list`, for people.
struct CacheListText {
    private var table: Table

    init(width: Int?) {
        self.table = Table(
            [
                .init(title: "URL", isElastic: true), .init(title: "SIZE", isNumber: true),
                .init(title: "AGE", isNumber: true), .init(title: "FRESH FOR", isNumber: true),
                .init(title: "HITS", isNumber: true), .init(title: "TIER"),
            ], width: width)
    }

    mutating func add(_ row: CacheRow) -> [String] {
        let method = row.method == "GET" ? "" : "\(row.method) "
        return self.table.add([
            Printable.text(method + row.url), Human.size(row.bytes),
            Human.time(milliseconds: row.ageMilliseconds),
            row.isFresh ? Human.time(milliseconds: row.freshForMilliseconds) : "stale",
            String(row.hits),
            row.tier.rawValue + (row.partial.map { ", \($0.text)" } ?? ""),
        ])
    }

    mutating func finish() -> [String] { self.table.finish() }
}
