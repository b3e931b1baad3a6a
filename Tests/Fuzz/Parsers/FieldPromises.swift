import LarderCookies
import LarderHTTP
@testable import LarderPolicy

/// `Cache-Control`, its targeted forms, `Age` and their numbers (RFC 9111 §5, RFC 9213).
enum CacheControlPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        let lines = input.textLines
        var fields = Fields()
        var targeted = Fields()
        for line in lines {
            fields.append("Cache-Control", line)
            targeted.append("CDN-Cache-Control", line)
            try self.checkNumber(line)
        }
        try checkSection(fields)
        let control = CacheControl(fields)
        try self.checkBounds(control)
        try self.checkWords(control, fields)
        let written = CacheControl(["Cache-Control": self.text(of: control)])
        try hold(
            self.withoutOrigin(written) == self.withoutOrigin(control),
            "written and read again: \(written), first: \(control)")
        var backwards = Fields()
        for line in lines.reversed() { backwards.append("Cache-Control", line) }
        try hold(
            self.withoutOrder(CacheControl(backwards)) == self.withoutOrder(control),
            "the order of lines counts: \(control)")
        if let narrow = CacheControl(targeted: targeted, name: FieldName(.cdnCacheControl)) {
            try self.checkBounds(narrow)
        }
        _ = CacheControl(request: fields)
    }

    /// `delta-seconds`: digits alone, and what is more than 2^31 is 2^31 (RFC 9111 §1.2.2).
    private static func checkNumber(_ line: FieldValue) throws(Violation) {
        let value = line.trimmingOWS()
        let age = Freshness.ageValue(["Age": String(decoding: value, as: UTF8.self)])
        try hold((0...DeltaSeconds.limit).contains(age.inSeconds), "an Age of \(age)")
        let read = DeltaSeconds.parse(value)
        guard !value.isEmpty, value.allSatisfy(ASCII.isDigit) else {
            return try hold(read == nil, "\(Array(value)) is no number, but was read as one")
        }
        let digits = String(decoding: value.drop { $0 == 0x30 }, as: UTF8.self)
        let expected = digits.count > 10 ? DeltaSeconds.limit : Int64("0" + digits) ?? -1
        try hold(
            read == .seconds(min(expected, DeltaSeconds.limit)),
            "\(digits) was read as \(read as Any)")
    }

    private static func durations(_ control: CacheControl) -> [(String, Duration?)] {
        [
            ("max-age", control.maxAge), ("s-maxage", control.sMaxage),
            ("max-stale", control.maxStale), ("min-fresh", control.minFresh),
            ("stale-while-revalidate", control.staleWhileRevalidate),
            ("stale-if-error", control.staleIfError),
        ]
    }

    private static func words(_ control: CacheControl) -> [(String, Bool)] {
        [
            ("no-store", control.noStore), ("no-cache", control.noCache),
            ("private", control.isPrivate), ("public", control.isPublic),
            ("must-revalidate", control.mustRevalidate),
            ("proxy-revalidate", control.proxyRevalidate),
            ("must-understand", control.mustUnderstand), ("no-transform", control.noTransform),
            ("immutable", control.immutable), ("only-if-cached", control.onlyIfCached),
        ]
    }

    private static func checkBounds(_ control: CacheControl) throws(Violation) {
        for (name, duration) in self.durations(control) {
            guard let duration else { continue }
            try hold(
                (0...DeltaSeconds.limit).contains(duration.inSeconds), "\(name)=\(duration)")
        }
    }

    /// Nothing is found that is not spelled out somewhere, and a directive alone is found.
    private static func checkWords(_ control: CacheControl, _ fields: Fields) throws(Violation) {
        let values = fields.values(FieldName(.cacheControl))
        // Bytes, because in text a mark that follows a letter makes another letter of it.
        let lines = values.map { $0.map(ASCII.lowercased) }
        for (name, isSet) in self.words(control) {
            let word = Array(name.utf8)
            if isSet { try hold(lines.contains { $0.contains(word) }, "\(name) from nowhere") }
            if lines.contains(word) { try hold(isSet, "\(name) overlooked") }
        }
        for (name, duration) in self.durations(control) where duration != nil {
            let word = Array(name.utf8)
            try hold(lines.contains { $0.contains(word) }, "\(name) from nowhere")
        }
    }

    private static func text(of control: CacheControl) -> String {
        var parts = self.words(control).filter(\.1).map(\.0)
        for (name, duration) in self.durations(control) {
            if let duration { parts.append("\(name)=\(duration.inSeconds)") }
        }
        for (name, names) in [
            ("no-cache", control.noCacheFields), ("private", control.privateFields),
        ] where !names.isEmpty {
            parts.append("\(name)=\"\(names.map(\.lowercased).joined(separator: ", "))\"")
        }
        return parts.joined(separator: ", ")
    }

    /// Without the notes on how it was written.
    private static func withoutOrigin(_ control: CacheControl) -> CacheControl {
        var control = control
        control.isPresent = true
        control.hasInvalidLifetime = false
        return control
    }

    private static func withoutOrder(_ control: CacheControl) -> CacheControl {
        var control = control
        control.noCacheFields.sort { $0.lowercased < $1.lowercased }
        control.privateFields.sort { $0.lowercased < $1.lowercased }
        return control
    }
}

/// Dates of HTTP and of cookies (RFC 9110 §5.6.7, RFC 6265 §5.1.1).
enum DatePromises {
    static let moments =
        [0, 1_772_323_200, -62_167_219_200, 253_402_300_799].map {
            Timestamp(seconds: $0)
        } + [Timestamp(microseconds: .min), Timestamp(microseconds: .max)]

    static func check(_ input: [UInt8]) throws(Violation) {
        for line in input.textLines {
            for now in self.moments { try self.check(line, now) }
        }
    }

    private static func check(_ line: FieldValue, _ now: Timestamp) throws(Violation) {
        guard let moment = HTTPDate.parse(line, now: now) else { return }
        let isBound = [.min, .max].contains(moment.microseconds)
        try hold(moment.microseconds % 1_000_000 == 0 || isBound, "a date with a fraction")
        // A two-digit year is counted from the clock, which here is anywhere.
        // The leap second after the last of all days is the first moment that cannot be written.
        let writable = Timestamp(seconds: -62_167_219_200)...Timestamp(seconds: 253_402_300_799)
        guard writable.contains(moment) else {
            let isLast = moment == Timestamp(seconds: 253_402_300_800)
            return try hold(
                isLast || !writable.contains(now) || line.count > 29, "\(moment) at \(now)")
        }
        let text = HTTPDate.format(moment)
        try hold(text.utf8.count == 29, "written as \(text)")
        try hold(
            HTTPDate.parse(text.utf8, now: Timestamp(seconds: 0)) == moment,
            "written as \(text), read as another moment")
        // Where both kinds of date can be read, and the year has four digits, they agree; but in a
        // cookie, 0099 is 1999.
        guard moment >= Timestamp(seconds: -59_011_459_200) else { return }
        let third = line.dropFirst(3).first
        guard third == ASCII.comma || third == ASCII.space,
            let cookie = CookieDate.parse(line)
        else { return }
        try hold(cookie == moment, "\(moment), but \(cookie) in a cookie")
    }
}

/// Entity tags and lists of them (RFC 9110 §8.8.3, §13.1.2).
enum EntityTagPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        var fields = Fields()
        for line in input.textLines {
            fields.append("If-None-Match", line)
            guard let tag = EntityTag(parsing: line) else { continue }
            try hold(tag.bytes[...] == line, "\(tag) is written otherwise than it came")
            try hold(
                EntityTag(parsing: tag.bytes[...]) == tag && tag.matchesWeakly(tag)
                    && tag.matchesStrongly(tag) != tag.isWeak, "\(tag) is not itself")
        }
        let name = FieldName(.ifNoneMatch)
        guard let condition = EntityTagCondition(fields, name: name) else {
            return try hold(fields.isEmpty, "the condition was overlooked")
        }
        guard case .tags(let tags) = condition else {
            let stars = input.filter { $0 == UInt8(ascii: "*") }.count
            return try hold(stars > 0, "a star from nowhere")
        }
        for tag in tags {
            try hold(condition.matchesWeakly(tag), "\(tag) is in the list, but does not match")
            try hold(condition.matchesStrongly(tag) || tag.isWeak, "\(tag) does not match")
        }
        guard !tags.isEmpty else { return }
        var written = Fields()
        written.append(
            "If-None-Match",
            Array(tags.map(\.bytes).joined(separator: [ASCII.comma, ASCII.space])))
        let again = EntityTagCondition(written, name: name)
        try hold(again == condition, "written and read again: \(again as Any), first: \(tags)")
    }
}

/// Ranges, `Content-Range`, and extents made of them (RFC 9110 §14).
enum RangePromises {
    private static let lengths: [UInt64] = [
        0, 1, 10, 40, 1 << 31, 1 << 32, 1 << 63, .max - 1, .max,
    ]

    static func check(_ input: [UInt8]) throws(Violation) {
        for line in input.textLines {
            if let set = RangeSet.parse(line) { try self.check(set) }
            if let range = ContentRange(parsing: line) { try self.check(range) }
            let digits = UInt64(saturatingDigits: line)
            try hold(
                (digits != nil) == (!line.isEmpty && line.allSatisfy(ASCII.isDigit)),
                "\(Array(line)) was read as \(digits as Any)")
        }
    }

    private static func check(_ set: RangeSet) throws(Violation) {
        try hold(!set.ranges.isEmpty, "an empty set")
        let parts = set.ranges.map { range in
            switch range {
            case .from(let first, let last): "\(first)-\(last.map { String($0) } ?? "")"
            case .suffix(let count): "-\(count)"
            }
        }
        let written = Array("bytes=\(parts.joined(separator: ", "))".utf8)
        try hold(RangeSet.parse(written[...]) == set, "written and read again: \(written.text)")
        for length in self.lengths {
            _ = set.isExcessive(length: length)
            let resolved = set.resolve(length: length) ?? []
            for range in resolved {
                try hold(range.upperBound <= length, "\(range) of \(length)")
                try hold(!range.isEmpty || length == 0, "an empty range of \(length)")
            }
            try self.checkExtent(resolved, length)
        }
    }

    private static func checkExtent(
        _ ranges: [Range<UInt64>], _ length: UInt64
    ) throws(Violation) {
        let extent = StoredExtent(completeLength: length, ranges: ranges)
        for (a, b) in zip(extent.ranges, extent.ranges.dropFirst()) {
            try hold(a.upperBound < b.lowerBound, "\(a) and \(b) are not apart")
        }
        try hold(extent.storedBytes <= length && extent.end <= length, "more than there is")
        let gaps = extent.gaps(in: 0..<length)
        let missing = gaps.reduce(UInt64(0)) { $0 &+ ($1.upperBound - $1.lowerBound) }
        try hold(missing == length - extent.storedBytes, "gaps and parts do not make the whole")
        for range in ranges where !range.isEmpty {
            try hold(extent.contains(range) && extent.gaps(in: range).isEmpty, "\(range) is lost")
        }
    }

    private static func check(_ range: ContentRange) throws(Violation) {
        if case .bytes(let bytes, let length) = range {
            try hold(!bytes.isEmpty && bytes.upperBound <= length ?? .max, "\(range)")
        }
        try hold(
            ContentRange(parsing: Array(range.value.utf8)[...]) == range,
            "written and read again: \(range.value)")
    }
}
