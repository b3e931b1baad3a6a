import ArgumentParser
import LarderConfig
import LarderDaemon
import LarderDisk
import LarderPolicy

extension HostSelector: ExpressibleByArgument {
    init?(argument: String) {
        self.init(argument)
    }
}

/// A status code, or a class of them: `404`, `4xx`.
struct StatusPattern: Equatable, ExpressibleByArgument {
    private var range: ClosedRange<Int>

    init?(argument: String) {
        let text = argument.lowercased()
        if text.count == 3, text.hasSuffix("xx"), let first = text.first?.wholeNumberValue,
            (1...9).contains(first)
        {
            self.range = first * 100...first * 100 + 99
        } else if let code = Int(text), (100...999).contains(code), text.count == 3 {
            self.range = code...code
        } else {
            return nil
        }
    }

    func matches(_ status: Int) -> Bool { self.range.contains(status) }
}

/// A size as an argument: as the configuration takes it, `64 KiB` or `64K`, or in bytes, `65536`.
struct SizeArgument: Equatable, ExpressibleByArgument {
    var bytes: UInt64

    init?(argument: String) {
        if let bytes = UInt64(argument), !argument.hasPrefix("+") {
            self.bytes = bytes
            return
        }
        guard let size = try? ByteSize(settingText: argument) else { return nil }
        self.bytes = size.bytes
    }
}

/// Which stored responses a listing is about.
struct ListFilter {
    var host: HostSelector?
    var pattern: Glob?
    /// Both of the whole representation's length.
    var largerThan: UInt64?
    var smallerThan: UInt64?
    var isFresh: Bool?
    /// Only what is not all there.
    var isPartial = false
    /// `.both` is none that can be asked for: what is in both tiers is in each.
    var tier: CacheTier?
    var method: String?
    var status: StatusPattern?
    /// Whose, in a session that is split; nil: anybody's.
    var principal: String?

    /// Whether what is known of a record so far leaves it a chance.
    func mayMatch(_ facts: ListingFacts) -> Bool {
        guard self.fits(size: facts.bodyLength), self.status?.matches(Int(facts.status)) ?? true
        else { return false }
        guard self.host != nil || self.pattern != nil || self.principal != nil else { return true }
        // `partition SP method SP URI`; a key that leaves the query out does not say all of it.
        let parts = facts.key.bytes.split(
            separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return true }
        if let principal = self.principal, !parts[0].elementsEqual(principal.utf8) { return false }
        if let host = self.host, !host.matches(URLHost.of(parts[2])) { return false }
        if let pattern = self.pattern, !facts.key.leavesOutSearch,
            !parts[2].contains(UInt8(ascii: "@"))
        {
            return pattern.matches(parts[2])
        }
        return true
    }

    func matches(_ row: CacheRow) -> Bool {
        guard self.fits(size: row.bytes), self.status?.matches(row.status) ?? true,
            self.isFresh.map({ $0 == row.isFresh }) ?? true,
            self.principal.map({ $0 == row.partition }) ?? true,
            !self.isPartial || row.partial != nil, self.method.map({ $0 == row.method }) ?? true,
            self.tier.map({ row.tier == $0 || row.tier == .both }) ?? true
        else { return false }
        if let host = self.host, !host.matches(URLHost.of(row.url.utf8)) { return false }
        return self.pattern?.matches(row.url) ?? true
    }

    private func fits(size: UInt64) -> Bool {
        self.largerThan.map { size > $0 } ?? true && self.smallerThan.map { size < $0 } ?? true
    }
}
