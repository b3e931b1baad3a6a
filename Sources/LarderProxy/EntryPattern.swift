package import LarderHTTP
package import NIOCore

/// Exchanges that repeat one another: the same request, and the same answer from memory.
///
/// Confined to its loop.
package final class EntryPattern {
    /// One of them, whole.
    package let entry: ExchangeEntry
    /// What a log has made of it, to note the next one for less: the log's own affair.
    package var draft: AnyObject?

    package init(_ entry: ExchangeEntry) {
        self.entry = entry
    }

    /// Another of them, whole.
    package func entry(with facts: EntryFacts) -> ExchangeEntry {
        var entry = self.entry
        entry.exchange = facts.exchange
        entry.client = facts.client
        entry.session = facts.session
        entry.began = facts.began
        entry.duration = facts.ended - facts.began
        entry.responseHeadBytes = facts.responseHeadBytes
        entry.cacheStatus?.ttl = facts.ttl
        return entry
    }
}

/// What an exchange differs in from the others of its pattern.
package struct EntryFacts {
    package var exchange: UInt64
    package var client: ClientAddress
    package var session: String
    package var began: Timestamp
    package var ended: Timestamp
    package var responseHeadBytes: UInt64
    /// What `ttl` in `Cache-Status` says.
    package var ttl: Int64

    package init(
        exchange: UInt64, client: ClientAddress, session: String, ended: Timestamp,
        took duration: TimeAmount, responseHeadBytes: UInt64, ttl: Int64
    ) {
        self.exchange = exchange
        self.client = client
        self.session = session
        // Not by way of `Duration`, whose 128 bits are divided by a call.
        self.began = Timestamp(
            microseconds: ended.microseconds &- duration.nanoseconds / 1_000)
        self.ended = ended
        self.responseHeadBytes = responseHeadBytes
        self.ttl = ttl
    }
}
