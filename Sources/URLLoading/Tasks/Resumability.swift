import Foundation
import LarderHTTP

/// Whether the rest of a response can be asked for later (§3.5).
enum Resumability {
    /// Why not.
    enum Obstacle: Error, Equatable {
        case scheme, method, ownRange, status, contentCoding, noRanges, noValidator
    }

    /// - Parameter now: settles the century of a date whose year has two digits.
    static func judge(
        _ request: URLRequest, _ head: ResponseHead, now: Timestamp
    ) -> Result<ResumeData.Validators, Obstacle> {
        guard let scheme = request.url?.scheme?.lowercased(), ["http", "https"].contains(scheme)
        else { return .failure(.scheme) }
        guard request.httpMethod ?? "GET" == "GET" else { return .failure(.method) }
        // A part of a part: what the program's own range means cannot be told for the rest.
        let names = (request.allHTTPHeaderFields ?? [:]).keys.map { $0.lowercased() }
        guard !names.contains("range") else { return .failure(.ownRange) }
        let isPartial = head.status.rawValue == 206
        guard head.status.rawValue == 200 || isPartial else { return .failure(.status) }
        guard !head.isContentCoded else { return .failure(.contentCoding) }
        guard isPartial || head.acceptsByteRanges else { return .failure(.noRanges) }
        let validators = ResumeData.Validators(head, now: now)
        guard validators.entityTag != nil || validators.lastModified != nil else {
            return .failure(.noValidator)
        }
        return .success(validators)
    }
}

extension ResumeData.Validators {
    /// The validators of a response that may stand in `If-Range` (RFC 9110 §13.1.5): the strong
    /// ones.
    init(_ head: ResponseHead, now: Timestamp) {
        if let tag = EntityTag(of: head.fields), !tag.isWeak {
            self.entityTag = String(validating: tag.bytes, as: UTF8.self)
        }
        let values = head.fields.values(FieldName(.lastModified))
        guard values.count == 1, let modified = HTTPDate.parse(values[0], now: now) else { return }
        // One that changed in the second in which it was sent may have changed again (§8.8.2.2).
        let dates = head.fields.values(FieldName(.date))
        let date = dates.first.flatMap { HTTPDate.parse($0, now: now) }
        if let date, date.seconds <= modified.seconds { return }
        self.lastModified = String(validating: values[0], as: UTF8.self)
    }
}

/// What the answer to a request for the rest means.
enum ResumeStep: Sendable, Equatable {
    /// The body is the rest: to be written behind what there is.
    ///
    /// - Parameter total: of the whole; -1 where nobody has said it.
    case goOn(total: Int64)
    /// The body is another one, from its first byte: to be written to a new file.
    case restart
    /// The body is of no use: to be asked for again, without a range.
    case askAgain

    static func decide(_ resume: ResumeData, _ head: ResponseHead) -> ResumeStep {
        switch head.status.rawValue {
        case 416: return .askAgain
        case 206: break
        default: return .restart
        }
        let lines = head.fields.values(FieldName(.contentRange))
        guard lines.count == 1,
            case .bytes(let range, let length) = ContentRange(parsing: lines[0]),
            range.lowerBound == UInt64(exactly: resume.part.length), !head.isContentCoded,
            resume.validators.agree(with: head)
        else { return .askAgain }
        let said = length.map { Int64(exactly: $0) } ?? -1
        guard let said, resume.total < 0 || said < 0 || said == resume.total else {
            return .askAgain
        }
        let total = max(said, resume.total)
        guard total < 0 || range.upperBound == UInt64(exactly: total) else { return .askAgain }
        return .goOn(total: total)
    }
}

extension ResumeData.Validators {
    /// Whether a part is of the same representation, by what it says of itself; an answer to
    /// `If-Range` need not say anything (RFC 9110 §15.3.7).
    fileprivate func agree(with head: ResponseHead) -> Bool {
        let tags = head.fields.values(FieldName(.etag))
        if let entityTag = self.entityTag, !tags.isEmpty {
            return tags.allSatisfy { $0.elementsEqual(entityTag.utf8) }
        }
        let dates = head.fields.values(FieldName(.lastModified))
        guard let lastModified = self.lastModified, !dates.isEmpty else { return true }
        return dates.allSatisfy { $0.elementsEqual(lastModified.utf8) }
    }
}

extension ResponseHead {
    fileprivate var isContentCoded: Bool {
        self.fields.values(FieldName(.contentEncoding)).contains { value in
            ListMembers(value).contains { !$0.spells("identity") }
        }
    }

    fileprivate var acceptsByteRanges: Bool {
        self.fields.values(FieldName(.acceptRanges)).contains { value in
            ListMembers(value).contains { $0.spells("bytes") }
        }
    }
}
