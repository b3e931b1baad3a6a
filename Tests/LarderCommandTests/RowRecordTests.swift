import Foundation
import LarderDaemon
import Testing

@testable import larder

@Suite("Rows as records to be sorted")
struct RowRecordTests {
    private static let rows: [CacheRow] = {
        var rows: [CacheRow] = []
        let urls = ["http://b/", "http://a/z", "https://A.b/", "http://a/", "ftp://c/é"]
        for (index, url) in urls.enumerated() {
            for number in [0, 1, Int64(index) * 1000, .max, -5, .min] {
                rows.append(
                    CacheRow(
                        id: UInt64(rows.count), partition: index == 2 ? "anna" : "",
                        method: index == 3 ? "POST" : "GET", url: url, status: 200 + index,
                        bytes: UInt64(bitPattern: number), ageMilliseconds: number,
                        freshForMilliseconds: number, hits: UInt64(bitPattern: number),
                        lastUsedMicroseconds: number, tier: [.memory, .disk, .both][index % 3]))
            }
        }
        rows[1].partial = CachePartial(
            ranges: [.init(first: 0, last: .max), .init(first: 3, last: 4)], storedBytes: 7,
            completeLength: 9)
        rows[2].partial = CachePartial(ranges: [], storedBytes: 0, completeLength: nil)
        rows[2].variant = [
            CacheField(name: "Accept", value: "a, \"b\""), CacheField(name: "x", value: ""),
        ]
        rows[3].variant = [CacheField(name: "Cookie", value: "é=\u{1}")]
        return rows
    }()

    @Test("are the same rows afterwards", arguments: RowOrder.allCases)
    func coding(_ order: RowOrder) {
        for row in Self.rows {
            let record = RowRecord.of(row, by: order)
            #expect(RowRecord.row(record) == row)
            for count in 0..<record.count { _ = RowRecord.row(Array(record.prefix(count))) }
            // Whatever damage makes of it: a row or none.
            for place in record.indices {
                var other = record
                other[place] ^= 0x80
                _ = RowRecord.row(other)
            }
        }
    }

    private func sorted(by order: RowOrder) throws -> [CacheRow] {
        var sorter = RecordSorter(limits: .init(runRecords: 3, fanIn: 3))
        for row in Self.rows { try sorter.add(RowRecord.of(row, by: order)) }
        var rows: [CacheRow] = []
        try sorter.finish {
            rows.append(try #require(RowRecord.row($0)))
            return true
        }
        return rows
    }

    @Test("come numbers the largest first, names in the order of their letters, then by URL")
    func order() throws {
        let facts: [(RowOrder, (CacheRow, CacheRow) -> Bool?)] = [
            (.size, { $0.bytes == $1.bytes ? nil : $0.bytes > $1.bytes }),
            (.hits, { $0.hits == $1.hits ? nil : $0.hits > $1.hits }),
            (
                .age,
                { a, b in
                    a.ageMilliseconds == b.ageMilliseconds
                        ? nil : a.ageMilliseconds > b.ageMilliseconds
                }
            ),
            (
                .freshFor,
                { a, b in
                    a.freshForMilliseconds == b.freshForMilliseconds
                        ? nil : a.freshForMilliseconds > b.freshForMilliseconds
                }
            ),
            (
                .lastUsed,
                { a, b in
                    a.lastUsedMicroseconds == b.lastUsedMicroseconds
                        ? nil : a.lastUsedMicroseconds > b.lastUsedMicroseconds
                }
            ),
            (.url, { _, _ in nil }),
        ]
        for (order, precedes) in facts {
            let expected = Self.rows.sorted { a, b in
                if let precedes = precedes(a, b) { return precedes }
                if a.url != b.url { return Array(a.url.utf8).lexicographicallyPrecedes(b.url.utf8) }
                return a.id < b.id
            }
            #expect(try self.sorted(by: order).map(\.id) == expected.map(\.id), "\(order)")
        }
        let hosts = try self.sorted(by: .host).map { URLHost.of($0.url.utf8) }
        #expect(
            hosts.map { String(decoding: $0, as: UTF8.self).lowercased() }
                == hosts.map {
                    String(decoding: $0, as: UTF8.self).lowercased()
                }.sorted())
    }

    @Test("JSON of a row is what a parser takes it for")
    func json() throws {
        struct Row: Decodable, Equatable {
            struct Partial: Decodable, Equatable {
                struct Range: Decodable, Equatable { var first: UInt64; var last: UInt64 }
                var ranges: [Range]
                var storedBytes: UInt64
                var completeLength: UInt64?
            }
            var ageMilliseconds: Int64
            var bytes: UInt64
            var freshForMilliseconds: Int64
            var hits: UInt64
            var lastUsedMicroseconds: Int64
            var method: String
            var partial: Partial?
            var partition: String
            var status: Int
            var tier: String
            var url: String
            var variant: [[String: String]]?
        }
        var rows = Self.rows
        rows[0].url = "http://h/\"\\\u{0}\n\u{1F}\u{7F}é\u{2028}😀"
        for row in rows {
            let line = RowJSON.line(row)
            #expect(!line.contains(0x0A))
            let read = try JSONDecoder().decode(Row.self, from: Data(line))
            #expect(read.url == row.url && read.method == row.method && read.bytes == row.bytes)
            #expect(read.hits == row.hits && read.tier == row.tier.rawValue)
            #expect(read.ageMilliseconds == row.ageMilliseconds && read.status == row.status)
            #expect(read.freshForMilliseconds == row.freshForMilliseconds)
            #expect(read.lastUsedMicroseconds == row.lastUsedMicroseconds)
            #expect(read.partition == row.partition)
            #expect(read.partial?.ranges.map(\.first) == row.partial?.ranges.map(\.first))
            #expect(read.partial?.ranges.map(\.last) == row.partial?.ranges.map(\.last))
            #expect(read.partial?.storedBytes == row.partial?.storedBytes)
            #expect(read.partial?.completeLength == row.partial?.completeLength)
            #expect(
                (read.variant ?? [])
                    == row.variant.map { ["name": $0.name, "value": $0.value] })
        }
        #expect(
            String(decoding: RowJSON.line(CacheTextTests.row), as: UTF8.self)
                == "{\"ageMilliseconds\":5000,\"bytes\":1536,\"freshForMilliseconds\":55000,\"hits\":3,"
                + "\"lastUsedMicroseconds\":0,\"method\":\"GET\",\"partition\":\"\",\"status\":200,"
                + "\"tier\":\"disk\",\"url\":\"http://h/a\"}")
    }
}
