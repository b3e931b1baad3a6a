import LarderHTTP
@testable import LarderPolicy

/// The rules of caching, on any request, any stored response and any clock (RFC 9111).
///
/// An input is blocks of lines between empty lines. The first line of each block begins it, the
/// others are `Name: value`:
///
/// ```
/// private 0 2 60 1000        kind; request sent, response received, now in seconds; body's length
///
/// GET http://a.example/      the request that the response answers
///
/// 200                        the response
///
/// GET http://a.example/      a later request
///
/// 304                        a later response
/// ```
enum PolicyPromises {
    private struct Scene {
        var configuration = PolicyConfiguration()
        var requestTime = Timestamp(seconds: 0)
        var responseTime = Timestamp(seconds: 0)
        var now = Timestamp(seconds: 0)
        var bodyLength: UInt64 = 0
        var first: Request
        var response: ResponseHead
        var later: Request
        var news: ResponseHead

        init(_ input: [UInt8]) {
            var blocks = Blocks(input)
            let words = blocks.next().start.split(separator: " ").map(String.init)
            if words.first == "private" { self.configuration.kind = .private }
            func number(_ index: Int) -> Int64 {
                index < words.count ? Int64(words[index]) ?? 0 : 0
            }
            self.requestTime = Timestamp(seconds: number(1))
            self.responseTime = Timestamp(seconds: number(2))
            self.now = Timestamp(seconds: number(3))
            self.bodyLength = UInt64(bitPattern: number(4))
            self.configuration.heuristicFraction = words.contains("half") ? 0.5 : 0.1
            self.configuration.semanticVary = !words.contains("literal")
            self.configuration.storesPost = words.contains("post")
            self.configuration.staleIfErrorGrace = .seconds(number(5))
            if words.contains("targeted") {
                self.configuration.targetedFields = [FieldName(.cdnCacheControl)]
            }
            self.first = blocks.next().request
            self.response = blocks.next().response
            self.later = blocks.next().request
            self.news = blocks.next().response
        }
    }

    /// One block of an input.
    private struct Block {
        var start: String
        var fields: Fields

        var request: Request {
            let words = self.start.split(separator: " ").map(String.init)
            let uri = words.count > 1 ? TargetURI(text: words[1]) : nil
            let length = words.count > 2 ? UInt64(words[2]) : nil
            // No parser takes anything but a token for a method.
            let method = words.first.flatMap { $0.utf8.allSatisfy(ASCII.isToken) ? $0 : nil }
            return Request(
                method: Method(rawValue: method ?? "GET"),
                uri: uri ?? TargetURI(scheme: .http, host: "a.example", pathAndQuery: "/"),
                fields: self.fields, bodyLength: length.map { .known($0) } ?? .none)
        }

        var response: ResponseHead {
            let code = UInt16(self.start.prefix(3)).map { max(100, $0) } ?? 200
            return ResponseHead(status: StatusCode(code), fields: self.fields)
        }
    }

    private struct Blocks {
        private var lines: ArraySlice<ArraySlice<UInt8>>

        init(_ input: [UInt8]) {
            self.lines = input.textLines[...]
        }

        mutating func next() -> Block {
            var start: String?
            var fields = Fields()
            while let line = self.lines.popFirst(), !(line.isEmpty && start != nil) {
                guard start != nil else {
                    start = String(decoding: line, as: UTF8.self)
                    continue
                }
                let name = line.prefix { $0 != ASCII.colon }
                fields.append(String(decoding: name, as: UTF8.self), line.dropFirst(name.count + 1))
            }
            return Block(start: start ?? "", fields: fields)
        }
    }

    static func check(_ input: [UInt8]) throws(Violation) {
        let scene = Scene(input)
        let stored = StoredHead(
            storing: scene.response, to: scene.first, requestTime: scene.requestTime,
            responseTime: scene.responseTime, configuration: scene.configuration)
        try self.checkStored(stored, scene)
        try self.checkFreshness(stored, scene)
        try self.checkReuse(stored, scene)
        try self.checkValidation(stored, scene)
        try self.checkAnswer(stored, scene)
        try self.checkExplained(stored, scene)
        try self.checkSearch(stored, scene)
        try self.checkOthers(stored, scene)
    }

    // MARK: Storing

    private static func checkStored(_ stored: StoredHead, _ scene: Scene) throws(Violation) {
        let length = BodyLength.known(scene.bodyLength)
        let verdict = Storability.judge(
            request: scene.first, response: scene.response, bodyLength: length, now: scene.now,
            configuration: scene.configuration)
        try checkSection(stored.fields)
        try checkSection(stored.varyingFields)
        for line in stored.fields.lines {
            try hold(
                !HopByHop.isConnectionField(line.known) || line.known == .te,
                "\(line.known) is stored")
        }
        try hold(stored.fields.has(.date), "stored without a date")
        guard verdict == .storable else { return }
        let control = ResponseDirectives(
            scene.response.fields, configuration: scene.configuration
        ).control
        try hold(!control.noStore || control.mustUnderstand, "no-store is stored")
        if scene.configuration.kind == .shared {
            try hold(!control.isPrivate, "private is stored in a shared cache")
        }
        try hold(!scene.response.status.isInformational, "an interim response is stored")
        try hold(
            !Variance.varies(scene.response.fields).contains(.any), "Vary: * is stored")
        try hold(
            Variance.matches(stored, scene.first, configuration: scene.configuration),
            "a stored response is not one for its own request")
    }

    // MARK: Freshness

    private static func checkFreshness(_ stored: StoredHead, _ scene: Scene) throws(Violation) {
        let configuration = scene.configuration
        let freshness = Freshness.of(stored, at: scene.now, configuration: configuration)
        try hold(
            freshness.lifetime >= .zero && freshness.currentAge >= .zero
                && freshness.staleness >= .zero, "less than nothing: \(freshness)")
        try hold(
            freshness.isFresh == (freshness.remaining > .zero)
                && freshness.isFresh
                    == (freshness.staleness == .zero
                        && freshness.lifetime != freshness.currentAge),
            "fresh and not: \(freshness)")
        let later = Freshness.of(
            stored, at: scene.now + .seconds(60), configuration: configuration)
        try hold(
            later.lifetime == freshness.lifetime && later.currentAge >= freshness.currentAge,
            "time passes and it grows younger: \(freshness), \(later)")
        if freshness.source == .heuristic {
            try hold(
                freshness.lifetime <= configuration.heuristicMaximum, "a guess beyond its bound")
        }
    }

    // MARK: Reuse

    private static func checkReuse(_ stored: StoredHead, _ scene: Scene) throws(Violation) {
        var invalidated = stored
        invalidated.isInvalidated = true
        let asked = CacheControl(request: scene.later.fields)
        for candidates in [[], [stored], [stored, stored], [invalidated]] {
            let verdict = Reuse.decide(
                request: scene.later, candidates: candidates, now: scene.now,
                configuration: scene.configuration)
            switch verdict {
            case .serve(let index, let freshness, let reason, let inBackground):
                try hold(candidates.indices.contains(index), "no response \(index)")
                try hold(!candidates[index].isInvalidated, "what is invalidated is served")
                try hold(freshness.isFresh || reason != nil, "stale without a reason")
                try hold(freshness.isFresh || !inBackground || reason != nil, "\(verdict)")
                let control = ResponseDirectives(
                    candidates[index].fields, configuration: scene.configuration
                ).control
                try hold(
                    freshness.isFresh || !control.mustRevalidate,
                    "stale in spite of must-revalidate")
                try hold(!asked.noCache, "served in spite of no-cache")
            case .validate(let index, _, _):
                try hold(candidates.indices.contains(index), "no response \(index)")
                try hold(!asked.onlyIfCached, "the origin asked in spite of only-if-cached")
            case .fetch:
                try hold(!asked.onlyIfCached, "the origin asked in spite of only-if-cached")
            case .refuse:
                try hold(asked.onlyIfCached, "refused for no reason")
            }
        }
        _ = StaleOnError.permits(
            stored, request: scene.later, now: scene.now, configuration: scene.configuration)
        let replaced = Variance.replaced(
            by: stored, among: [stored, invalidated], configuration: scene.configuration)
        try hold(
            replaced == replaced.sorted() && Set(replaced).isSubset(of: [0, 1]), "\(replaced)")
    }

    // MARK: Validation

    private static func checkValidation(_ stored: StoredHead, _ scene: Scene) throws(Violation) {
        let conditional = Validation.conditionalRequest(scene.later, validating: [stored])
        if let fields = conditional?.fields {
            try hold(
                fields.has(.ifNoneMatch) || fields.has(.ifModifiedSince),
                "a conditional request without a condition")
            try hold(!fields.has(.range) && !fields.has(.ifRange), "validated in part")
            try checkSection(fields)
        }
        let selected = Validation.selected(by: scene.news, among: [stored, stored])
        try hold(Set(selected).isSubset(of: [0, 1]), "a 304 selects \(selected)")
        let freshened = Validation.freshen(
            stored, with: scene.news, requestTime: scene.now, responseTime: scene.now,
            configuration: scene.configuration)
        try checkSection(freshened.fields)
        for name in [KnownField.contentLength, .contentEncoding, .contentRange] {
            try hold(
                freshened.fields.values(FieldName(name)) == stored.fields.values(FieldName(name)),
                "\(name) is changed by a 304")
        }
        try hold(freshened.fields.has(.date), "freshened without a date")
        let effect = Validation.effect(
            ofHead: scene.news, on: stored, bodyLength: scene.bodyLength)
        try hold(effect != .freshens || scene.news.status == .ok, "freshened by \(scene.news)")
    }

    // MARK: The answer

    private static func checkAnswer(_ stored: StoredHead, _ scene: Scene) throws(Violation) {
        let outcome = ClientCondition.evaluate(
            scene.later, against: stored, bodyLength: scene.bodyLength)
        if case .partial(let range) = outcome {
            try hold(
                !range.isEmpty && range.upperBound <= scene.bodyLength,
                "\(range) of \(scene.bodyLength)")
        }
        let age = Freshness.of(stored, at: scene.now, configuration: scene.configuration)
            .currentAge
        for outcome in [outcome, .full, .notModified, .rangeNotSatisfiable] {
            let answer = StoredAnswer.head(
                for: stored, outcome: outcome, bodyLength: scene.bodyLength, age: age,
                now: scene.now, configuration: scene.configuration)
            try checkSection(answer.fields)
            try hold(answer.fields.has(.date), "an answer without a date")
            if let value = answer.fields.first(FieldName(.age)) {
                try hold(value.allSatisfy(ASCII.isDigit), "an Age of \(Array(value).text)")
            }
        }
    }

    // MARK: Explaining

    /// What is explained is what is done, whatever the client may ask of the cache.
    private static func checkExplained(_ stored: StoredHead, _ scene: Scene) throws(Violation) {
        for policy in RequestCachePolicy.allCases {
            let verdict = Reuse.decide(
                request: scene.later, candidates: [stored], now: scene.now,
                configuration: scene.configuration, policy: policy)
            let explanation = Explanation(
                request: scene.later, candidates: [stored], bodyLengths: [scene.bodyLength],
                now: scene.now, configuration: scene.configuration, policy: policy)
            try hold(explanation.verdict == verdict, "\(explanation.verdict), but \(verdict)")
            try hold(!explanation.reason.section.isEmpty, "no reason for \(verdict)")
            if policy == .returnCacheDontLoad {
                try hold(verdict.forward == nil, "the origin asked offline: \(verdict)")
            }
        }
        let length = BodyLength.known(scene.bodyLength)
        let judged = Storability.judge(
            request: scene.first, response: scene.response, bodyLength: length, now: scene.now,
            configuration: scene.configuration)
        let explanation = StorageExplanation(
            request: scene.first, response: scene.response, bodyLength: length, now: scene.now,
            configuration: scene.configuration)
        try hold(explanation.verdict == judged, "\(explanation.verdict), but \(judged)")
    }

    // MARK: Queries that do not count

    /// The equality of `No-Vary-Search` is one, and its place is no request's own.
    private static func checkSearch(_ stored: StoredHead, _ scene: Scene) throws(Violation) {
        let search = NoVarySearch(stored.fields)
        let a = scene.first.uri.pathAndQuery
        let b = scene.later.uri.pathAndQuery
        try hold(search.equates(a, a) && search.equates(b, b), "\(a) or \(b) is not itself")
        try hold(search.equates(a, b) == search.equates(b, a), "\(a) and \(b) one way only")
        if search == .standard { try hold(search.equates(a, b) == (a == b), "\(a), \(b)") }
        let key = CacheKey(method: .get, uri: scene.first.uri)
        try hold(
            !key.leavesOutSearch && key.withoutSearch.leavesOutSearch
                && key.withoutSearch.withoutSearch == key.withoutSearch, "\(key.parts)")
        let place = Storability.place(
            stored, for: scene.first, configuration: scene.configuration)
        try hold(
            !place.key.leavesOutSearch || place.head.answers(scene.first.uri),
            "stored where its own request does not find it: \(place.key.parts)")
    }

    // MARK: Other resources

    private static func checkOthers(_ stored: StoredHead, _ scene: Scene) throws(Violation) {
        let uris = Invalidation.uris(request: scene.later, response: scene.news)
        try hold(uris.isEmpty || !scene.later.method.isSafe, "invalidated by a safe method")
        let groups = CacheGroups.of(stored)
        try hold(
            groups.count <= CacheGroups.limit && Set(groups).count == groups.count, "\(groups)")
        _ = CacheGroups.invalidated(by: scene.news, to: scene.later)
        let key = Storability.key(for: scene.first)
        let parts = key.parts
        // The parts leave user and password out; spellings that mean the same have one key.
        guard scene.first.uri.userInfo == nil else { return }
        let again = TargetURI(text: parts.uri).map {
            CacheKey(method: Method(rawValue: parts.method), uri: $0, partition: parts.partition)
        }
        try hold(again == key, "a key of other parts: \(parts)")
    }
}
