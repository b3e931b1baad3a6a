package import LarderHTTP

/// Which of several stored responses a request means (RFC 9111 §4.1).
package enum Variance {
    /// A member of `Vary`.
    enum Member: Sendable, Hashable {
        case any
        case field(FieldName)
    }

    /// More members than this count as `*`: each is looked for in each request, once for each stored
    /// variant.
    static let memberLimit = 32

    /// How many bytes of the request may be what a response varies by; with more it varies by what is
    /// not compared, as with `*`.
    static let selectedLimit = 16_384

    /// Whether the response may vary by what is not compared.
    static func variesByAny(_ response: ResponseHead, to request: Request) -> Bool {
        let members = self.varies(response.fields)
        guard !members.isEmpty else { return false }
        guard !members.contains(.any) else { return true }
        let selected = request.fields.lines.reduce(0) { sum, line in
            self.selects(line, of: request, members)
                ? sum + request.fields.value(of: line).count : sum
        }
        return selected > self.selectedLimit
    }

    private static func selects(
        _ line: Fields.Line, of request: Request, _ members: [Member]
    ) -> Bool {
        members.contains { member in
            guard case .field(let name) = member else { return false }
            return request.fields.matches(line, name)
        }
    }

    /// All members of all `Vary` lines.
    ///
    /// What is no field name counts as `*`: nobody can say what it was meant to vary by.
    static func varies(_ fields: Fields) -> [Member] {
        guard fields.has(.vary) else { return [] }
        let members = fields.members(FieldName(.vary))
        guard members.count <= self.memberLimit else { return [.any] }
        return members.map { self.member($0) }
    }

    static func member(_ text: FieldValue) -> Member {
        guard text.isToken, !text.elementsEqual([UInt8(ascii: "*")]) else { return .any }
        return .field(FieldName(String(decoding: text, as: UTF8.self)))
    }

    /// Whether the stored response is one of several that differ by a field.
    package static func depends(_ head: StoredHead, on name: FieldName) -> Bool {
        head.facts.varies.contains(.field(name))
    }

    /// Whether it is one of several that differ by a field of which `isMeant` says so, or by what no
    /// request tells.
    package static func depends(
        _ head: StoredHead, onAny isMeant: (FieldName) -> Bool
    ) -> Bool {
        head.facts.varies.contains { member in
            guard case .field(let name) = member else { return true }
            return isMeant(name)
        }
    }

    /// Whether the request has, in every field that the stored response varies by, what the request
    /// had that led to it.
    ///
    /// `*` never matches.
    package static func matches(
        _ head: StoredHead, _ request: Request, configuration: PolicyConfiguration
    ) -> Bool {
        if configuration.ignored.contains(.vary) { return true }
        let semantic = configuration.semanticVary
        return head.facts.varies.allSatisfy {
            self.matches($0, head, request, semantic: semantic)
        }
    }

    /// Whether the request has in the field of one member of `Vary` what the first request had.
    static func matches(
        _ member: Member, _ head: StoredHead, _ request: Request, semantic: Bool
    ) -> Bool {
        guard case .field(let name) = member else { return false }
        if VaryingValue.equal(name, head.varyingFields, request.fields, semantic: semantic) {
            return true
        }
        return semantic && name.known == .acceptLanguage
            && VaryingValue.prefersLanguage(of: head.fields, status: head.status, request.fields)
    }

    private static func matches(
        _ members: [Member], _ stored: Fields, _ presented: Fields, semantic: Bool
    ) -> Bool {
        members.allSatisfy { member in
            guard case .field(let name) = member else { return false }
            return VaryingValue.equal(name, stored, presented, semantic: semantic)
        }
    }

    /// The lines of the request that the response's `Vary` names, as they were sent.
    package static func fields(
        selectedBy response: ResponseHead, from request: Request
    ) -> Fields {
        self.fields(selectedBy: response.fields, from: request)
    }

    static func fields(selectedBy response: Fields, from request: Request) -> Fields {
        let members = self.varies(response)
        var selected = Fields()
        guard !members.isEmpty else { return selected }
        for line in request.fields.lines where self.selects(line, of: request, members) {
            selected.append(line, of: request.fields)
        }
        return selected
    }

    /// The matching response to use: one with `Vary` before one without, which may have been left
    /// out by mistake (§4.1); then the most recent by `Date`, by the moment of asking, by receipt, by
    /// position.
    static func selected(
        by request: Request, among candidates: [StoredHead], indices: some Sequence<Int>,
        configuration: PolicyConfiguration
    ) -> Int? {
        var first: Int?
        var others: [Int] = []
        for index in indices
        where self.matches(candidates[index], request, configuration: configuration) {
            if first == nil { first = index } else { others.append(index) }
        }
        // Nearly always it is one: no list is made for it.
        guard let first, !others.isEmpty else { return first }
        let matching = [first] + others
        let varying = matching.filter { candidates[$0].fields.has(.vary) }
        return self.mostRecent(of: candidates, indices: varying.isEmpty ? matching : varying)
    }

    /// The index of the most recent response by `Date`, then by the moment of asking: what was asked
    /// for later was made later, however long the other was on its way; then by receipt and position.
    static func mostRecent(of heads: [StoredHead], indices: [Int]) -> Int? {
        indices.max { a, b in self.recency(of: heads[a], a) < self.recency(of: heads[b], b) }
    }

    private static func recency(
        of head: StoredHead, _ index: Int
    ) -> (Timestamp, Timestamp, Timestamp, Int) {
        (head.facts.date ?? head.requestTime, head.requestTime, head.responseTime, index)
    }

    // MARK: Replacing

    /// The stored responses whose place a new one takes.
    ///
    /// It takes the place of what its own request would have selected; of what has no `Vary` where
    /// the new one has it, as the origin has changed its mind about the resource; and the oldest
    /// ones beyond the number of variants that are kept. A new one without `Vary` leaves the
    /// variants for other requests alone: it may lack the field by mistake, and they are preferred
    /// to it (§4.1).
    ///
    /// - Parameter request: the one that led to the new response; nil: all variants count as its.
    package static func replaced(
        by new: StoredHead, to request: Request? = nil, among stored: [StoredHead],
        configuration: PolicyConfiguration = PolicyConfiguration()
    ) -> [Int] {
        if stored.isEmpty { return [] }
        if configuration.ignored.contains(.vary) { return Array(stored.indices) }
        let names = new.facts.varies
        var replaced = Set<Int>()
        for (index, old) in stored.enumerated() {
            let oldNames = old.facts.varies
            if oldNames.isEmpty || oldNames.contains(.any) {
                replaced.insert(index)
            } else if names.isEmpty {
                let isItsOwn = request.map { self.matches(old, $0, configuration: configuration) }
                if isItsOwn ?? true { replaced.insert(index) }
            } else if Set(oldNames).isSubset(of: Set(names)),
                self.matches(
                    oldNames, old.varyingFields, new.varyingFields,
                    semantic: configuration.semanticVary)
            {
                replaced.insert(index)
            }
        }
        var kept = stored.indices.filter { !replaced.contains($0) }
        kept.sort { stored[$0].responseTime < stored[$1].responseTime }
        let excess = kept.count - (max(1, configuration.maximumVariants) - 1)
        if excess > 0 { replaced.formUnion(kept.prefix(excess)) }
        return replaced.sorted()
    }
}
