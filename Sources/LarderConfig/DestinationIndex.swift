/// The destinations of one rule, found by what a request asks for instead of one after the other.
///
/// Says what `DestinationPattern.matches` says of each of them; what that costs grows with the labels
/// of the host and the lengths of prefixes in use, and not with how many destinations there are, but
/// for those with wildcards inside.
struct DestinationIndex: Sendable {
    /// The ports at which something is meant.
    private struct Ports: Sendable {
        private var isEvery = false
        private var ranges: [ClosedRange<UInt16>] = []

        mutating func add(_ ports: PortRange?) {
            guard let ports else {
                self.isEvery = true
                return
            }
            var (low, high) = (ports.ports.lowerBound, ports.ports.upperBound)
            self.ranges.removeAll { range in
                // Those that touch become one.
                guard UInt32(range.lowerBound) <= UInt32(high) + 1,
                    UInt32(low) <= UInt32(range.upperBound) + 1
                else { return false }
                (low, high) = (min(low, range.lowerBound), max(high, range.upperBound))
                return true
            }
            self.ranges.append(low...high)
        }

        func contains(_ port: UInt16) -> Bool {
            self.isEvery || self.ranges.contains { $0.contains(port) }
        }
    }

    /// The blocks of one family with prefixes of one length, by their addresses.
    private struct Blocks: Sendable {
        let family: IPAddress.Family
        let prefixLength: Int
        var ports: [UInt128: Ports] = [:]

        func contains(_ address: IPAddress, _ port: UInt16) -> Bool {
            guard address.family == self.family else { return false }
            let mask = AddressBlock.mask(self.prefixLength, of: address.bitWidth)
            return self.ports[address.value & mask]?.contains(port) ?? false
        }
    }

    private var everywhere = Ports()
    private var names: [Substring: Ports] = [:]
    /// By the name of the domain, which is meant together with all below it.
    private var domains: [Substring: Ports] = [:]
    /// By the name below which everything is meant: `*.` stands before it.
    private var below: [Substring: Ports] = [:]
    private var longestSuffix = 0
    private var blocks: [Blocks] = []
    /// What an address may be led to counts, too.
    private let isWary: Bool
    /// Those with wildcards inside, asked one after the other.
    private(set) var globs: [DestinationPattern] = []

    /// - Parameter isWary: blocks mean what is embedded in an address, too.
    init(_ destinations: [DestinationPattern], isWary: Bool = false) {
        self.isWary = isWary
        for destination in destinations { self.add(destination) }
    }

    private mutating func add(_ destination: DestinationPattern) {
        switch destination.host {
        case .any: self.everywhere.add(destination.ports)
        case .domain(let domain):
            self.domains[domain[...], default: Ports()].add(destination.ports)
            self.longestSuffix = max(self.longestSuffix, domain.utf8.count)
        case .glob(let glob): self.add(glob, destination)
        case .block(let block): self.add(block, destination.ports)
        }
    }

    private mutating func add(_ glob: Glob, _ destination: DestinationPattern) {
        let isBelow = glob.pattern.hasPrefix("*.")
        let name = isBelow ? glob.pattern.dropFirst(2) : glob.pattern[...]
        if name.utf8.contains(UInt8(ascii: "*")) || name.utf8.contains(UInt8(ascii: "?")) {
            self.globs.append(destination)
        } else if isBelow {
            self.below[name, default: Ports()].add(destination.ports)
            self.longestSuffix = max(self.longestSuffix, name.utf8.count)
        } else {
            self.names[name, default: Ports()].add(destination.ports)
        }
    }

    private mutating func add(_ block: AddressBlock, _ ports: PortRange?) {
        let index: Int
        if let known = self.blocks.firstIndex(where: {
            $0.family == block.base.family && $0.prefixLength == block.prefixLength
        }) {
            index = known
        } else {
            index = self.blocks.count
            self.blocks.append(
                Blocks(family: block.base.family, prefixLength: block.prefixLength))
        }
        self.blocks[index].ports[block.base.value, default: Ports()].add(ports)
    }

    /// Whether one of the destinations is meant; as `DestinationPattern.matches`.
    func matches(host: String, port: UInt16, address: IPAddress?) -> Bool {
        if self.everywhere.contains(port) { return true }
        let name = host.withoutFinalDot
        return self.matches(name: name, port: port)
            || self.matches(address: address, name: name, port: port)
            || self.globs.contains { $0.matches(host: host, port: port) }
    }

    private func matches(name: Substring, port: UInt16) -> Bool {
        if self.names[name]?.contains(port) == true { return true }
        if self.domains[name]?.contains(port) == true { return true }
        return self.suffixes(of: name).contains {
            self.domains[$0]?.contains(port) == true || self.below[$0]?.contains(port) == true
        }
    }

    /// What lies behind each dot of a name, as far as anything is known that is so long.
    func suffixes(of name: Substring) -> [Substring] {
        guard !self.domains.isEmpty || !self.below.isEmpty else { return [] }
        var suffixes: [Substring] = []
        var end = name.utf8.endIndex
        var length = 0
        while length <= self.longestSuffix, end > name.utf8.startIndex {
            let before = name.utf8.index(before: end)
            if name.utf8[before] == UInt8(ascii: ".") { suffixes.append(name[end...]) }
            (end, length) = (before, length + 1)
        }
        return suffixes
    }

    private func matches(address: IPAddress?, name: Substring, port: UInt16) -> Bool {
        guard !self.blocks.isEmpty, let target = address ?? IPAddress(host: name) else {
            return false
        }
        let ends = self.isWary ? target.whereConnectionsMayEnd : target.whereConnectionsEnd
        return ends.contains { address in
            self.blocks.contains { $0.contains(address, port) }
        }
    }
}

/// Access rules, put in order for judging many requests.
package struct AccessJudge: Sendable {
    private struct Entry: Sendable {
        let rule: AccessRule
        /// nil: all destinations.
        let destinations: DestinationIndex?
    }

    private let entries: [Entry]

    package init(_ rules: [AccessRule]) {
        self.entries = rules.map { rule in
            Entry(
                rule: rule,
                destinations: rule.destinations.isEmpty
                    ? nil
                    : DestinationIndex(rule.destinations, isWary: rule.action == .deny))
        }
    }

    /// Whether the address that a host leads to makes a difference to any rule.
    package var speaksOfAddresses: Bool {
        self.entries.contains { $0.rule.speaksOfAddresses || $0.rule.mayLeadBack }
    }

    /// The first rule that fits decides; where none does, the request is denied.
    ///
    /// One that allows without naming destinations lets clients elsewhere go everywhere but back to
    /// this machine itself (``AccessQuestion/leadsBack``).
    package func judge(_ question: AccessQuestion) -> AccessDecision {
        let index = self.entries.firstIndex { entry in
            entry.rule.concerns(question.client, method: question.method)
                && (entry.destinations?.matches(
                    host: question.host, port: question.port, address: question.address) ?? true)
        }
        guard let index else { return AccessDecision(isAllowed: false, rule: nil) }
        let rule = self.entries[index].rule
        if rule.allowsEverything, !question.client.isOfThisMachine, question.leadsBack {
            return AccessDecision(isAllowed: false, rule: index, leadsBack: true)
        }
        return AccessDecision(isAllowed: rule.action == .allow, rule: index)
    }
}
