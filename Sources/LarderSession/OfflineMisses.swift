package import LarderHTTP

/// What clients asked for while the origin must not be asked, and was not stored: the list of what
/// to fetch once the network is there.
///
/// A value, bounded in entries and bytes: beyond that new URLs are only counted.
package struct OfflineMisses: Sendable {
    package struct Entry: Sendable, Equatable {
        package var method: String
        package var uri: String
        package var count: UInt64
        package var first: Timestamp
        package var last: Timestamp
    }

    private struct Name: Hashable {
        let method: String
        let uri: String
    }

    private var entries: [Name: Entry] = [:]
    private var bytes = 0
    /// How many misses of further URLs are not in the list, because it was full.
    package private(set) var unlisted: UInt64 = 0
    private let maximumEntries: Int
    private let maximumBytes: Int

    package init(maximumEntries: Int = 4096, maximumBytes: Int = 1 << 20) {
        self.maximumEntries = maximumEntries
        self.maximumBytes = maximumBytes
    }

    /// Notes a miss; user information in the URI is left out.
    package mutating func note(_ request: Request, at now: Timestamp) {
        let name = Name(method: request.method.rawValue, uri: request.uri.description)
        if var entry = self.entries[name] {
            entry.count &+= 1
            entry.last = max(entry.last, now)
            self.entries[name] = entry
            return
        }
        let cost = name.method.utf8.count + name.uri.utf8.count
        guard self.entries.count < self.maximumEntries, cost <= self.maximumBytes - self.bytes
        else {
            self.unlisted &+= 1
            return
        }
        self.bytes += cost
        self.entries[name] = Entry(
            method: name.method, uri: name.uri, count: 1, first: now, last: now)
    }

    /// All of them, the first missed first.
    package var all: [Entry] {
        self.entries.values.sorted { ($0.first, $0.uri, $0.method) < ($1.first, $1.uri, $1.method) }
    }

    package mutating func clear() {
        self.entries = [:]
        self.bytes = 0
        self.unlisted = 0
    }
}
