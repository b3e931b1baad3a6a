import Foundation
import LarderDisk
import LarderHTTP

/// How the blobs that programs keep are written: a mark, the version, then each part behind its length
/// (big-endian), and a checksum of all that.
struct SealedForm: Sendable {
    private let head: [UInt8]

    init(mark: String, version: UInt8) {
        self.head = Array(mark.utf8) + [version]
    }

    /// nil for anything but what a writer of this form made, whole.
    func open(_ data: Data) -> Reader? {
        let bytes = Array(data)
        guard bytes.count >= self.head.count + 8, bytes.starts(with: self.head) else { return nil }
        var seal = Reader(bytes[(bytes.count - 8)...])
        let sealed = bytes.span.extracting(0..<(bytes.count - 8))
        guard seal.number() == Checksum.chain(sealed, behind: 0) else { return nil }
        return Reader(bytes[self.head.count..<(bytes.count - 8)])
    }

    struct Writer {
        private var bytes: [UInt8]

        init(_ form: SealedForm) {
            self.bytes = form.head
        }

        mutating func append(_ number: UInt64) {
            for shift in stride(from: UInt64(56), through: 0, by: -8) {
                self.bytes.append(UInt8(truncatingIfNeeded: number >> shift))
            }
        }

        mutating func append(_ text: String?) {
            guard let text else { return self.append(UInt64.max) }
            self.append(UInt64(text.utf8.count))
            self.bytes.append(contentsOf: text.utf8)
        }

        mutating func append(_ data: Data) {
            self.append(UInt64(data.count))
            self.bytes.append(contentsOf: data)
        }

        mutating func append(_ fields: [ResumeData.Field]) {
            self.append(UInt64(fields.count))
            for field in fields {
                self.append(field.name)
                self.append(field.value)
            }
        }

        mutating func sealed() -> Data {
            self.append(Checksum.chain(self.bytes.span, behind: 0))
            return Data(self.bytes)
        }
    }

    /// Takes parts off the front, as long as there are any.
    struct Reader {
        private var rest: ArraySlice<UInt8>

        fileprivate init(_ bytes: ArraySlice<UInt8>) {
            self.rest = bytes
        }

        var isAtEnd: Bool { self.rest.isEmpty }

        mutating func number() -> UInt64? {
            guard self.rest.count >= 8 else { return nil }
            let number = self.rest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            self.rest = self.rest.dropFirst(8)
            return number
        }

        private mutating func bytes() -> ArraySlice<UInt8>? {
            guard let count = self.number().flatMap({ Int(exactly: $0) }), count <= self.rest.count
            else { return nil }
            defer { self.rest = self.rest.dropFirst(count) }
            return self.rest.prefix(count)
        }

        mutating func data() -> Data? { self.bytes().map { Data($0) } }

        mutating func text() -> String? {
            self.bytes().flatMap { String(validating: $0, as: UTF8.self) }
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

        mutating func fields() -> [ResumeData.Field]? {
            // Each takes 16 bytes at least.
            guard let count = self.number(), count <= UInt64(self.rest.count / 16) else {
                return nil
            }
            var fields: [ResumeData.Field] = []
            for _ in 0..<count {
                guard let name = self.text(), let value = self.text() else { return nil }
                fields.append(ResumeData.Field(name: name, value: value))
            }
            return fields
        }
    }
}

extension ResumeData.Field {
    /// Whether a request could have it.
    var isSound: Bool {
        !self.name.isEmpty && self.name.utf8.allSatisfy(ASCII.isToken) && Self.isValue(self.value)
    }

    static func isValue(_ text: String) -> Bool { text.utf8.allSatisfy(ASCII.isFieldValue) }
}
