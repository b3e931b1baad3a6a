import Foundation
import LarderDisk

// The form of resume data: a mark, the version, then each part behind its length (big-endian), and a
// checksum of all that. Nothing in it is believed: it may come from anywhere.

extension ResumeData {
    private static let mark = Array("URLLoading resume".utf8)
    private static let version: UInt8 = 1
    /// Longer ones are refused: a request's fields are far from it.
    private static let limit = 1 << 20

    func encoded() -> Data {
        var bytes = Self.mark + [Self.version]
        func append(_ number: UInt64) {
            for shift in stride(from: UInt64(56), through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }
        func append(_ text: String?) {
            guard let text else { return append(UInt64.max) }
            append(UInt64(text.utf8.count))
            bytes.append(contentsOf: text.utf8)
        }
        append(self.url.absoluteString)
        append(UInt64(self.fields.count))
        for field in self.fields {
            append(field.name)
            append(field.value)
        }
        append(self.validators.entityTag)
        append(self.validators.lastModified)
        append(UInt64(bitPattern: self.total))
        append(self.part.path)
        append(UInt64(bitPattern: self.part.length))
        append(self.part.checksum)
        append(Checksum.chain(bytes.span, behind: 0))
        return Data(bytes)
    }

    /// nil for anything but what `encoded` makes: foreign, damaged, cut off or forged data.
    init?(decoding data: Data) {
        guard data.count <= Self.limit else { return nil }
        let bytes = Array(data)
        guard bytes.count > 8, bytes.starts(with: Self.mark + [Self.version]) else { return nil }
        var seal = Reader(bytes[(bytes.count - 8)...])
        let sealed = bytes.span.extracting(0..<(bytes.count - 8))
        guard seal.number() == Checksum.chain(sealed, behind: 0) else { return nil }
        var reader = Reader(bytes[(Self.mark.count + 1)..<(bytes.count - 8)])
        guard let resume = Self.read(&reader), reader.isAtEnd, resume.isSound else { return nil }
        self = resume
    }

    private static func read(_ reader: inout Reader) -> ResumeData? {
        guard let address = reader.text(), let url = URL(string: address),
            let count = reader.number(), count <= UInt64(self.limit)
        else { return nil }
        var fields: [Field] = []
        for _ in 0..<count {
            guard let name = reader.text(), let value = reader.text() else { return nil }
            fields.append(Field(name: name, value: value))
        }
        guard let entityTag = reader.optionalText(), let lastModified = reader.optionalText(),
            let total = reader.number(), let path = reader.text(), let length = reader.number(),
            let checksum = reader.number()
        else { return nil }
        let part = DownloadPart(
            path: path, length: Int64(bitPattern: length), checksum: checksum)
        return ResumeData(
            url: url, fields: fields,
            validators: Validators(entityTag: entityTag, lastModified: lastModified),
            total: Int64(bitPattern: total), part: part)
    }

    /// Whether a download could have left it.
    private var isSound: Bool {
        guard let scheme = self.url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            self.url.host?.isEmpty == false,
            self.part.length > 0, self.total == -1 || self.total >= self.part.length,
            DownloadFile.isPlausible(self.part.path)
        else { return false }
        let validators = [self.validators.entityTag, self.validators.lastModified].compactMap { $0 }
        guard !validators.isEmpty, validators.allSatisfy(Self.isFieldValue) else { return false }
        return self.fields.allSatisfy { field in
            !field.name.isEmpty && field.name.utf8.allSatisfy(Self.isTokenByte)
                && Self.isFieldValue(field.value)
        }
    }

    private static func isFieldValue(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 == 9 || ($0 >= 0x20 && $0 != 0x7F) }
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default:
            "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// Takes parts off the front, as long as there are any.
    private struct Reader {
        private var rest: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) {
            self.rest = bytes
        }

        var isAtEnd: Bool { self.rest.isEmpty }

        mutating func number() -> UInt64? {
            guard self.rest.count >= 8 else { return nil }
            let number = self.rest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            self.rest = self.rest.dropFirst(8)
            return number
        }

        mutating func text() -> String? {
            guard let count = self.number().flatMap({ Int(exactly: $0) }), count <= self.rest.count
            else { return nil }
            defer { self.rest = self.rest.dropFirst(count) }
            return String(validating: self.rest.prefix(count), as: UTF8.self)
        }

        /// - Returns: `.some(nil)` for one that is not there.
        mutating func optionalText() -> String?? {
            var ahead = self
            if ahead.number() == .max {
                self = ahead
                return .some(nil)
            }
            return self.text().map { .some($0) }
        }
    }
}
