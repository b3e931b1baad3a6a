import LarderCookies
import LarderCredentials
import LarderHTTP

@testable import LarderState

/// What lies in a session's state, once it is opened: whoever wrote it had the key, which an older
/// release, another program or a person with a backup may have had, too.
///
/// Nothing that is shown when a promise breaks holds what was in a record: it may be a secret.
enum StateRecordPromises {
    private static let seal = RecordSeal(StateKey(), salt: [1, 2, 3])
    private static let now = Timestamp(seconds: 1_700_000_000)

    static func check(_ input: [UInt8]) throws(Violation) {
        for kind in StateRecord.Kind.allCases {
            try self.checkRecord(input, kind)
            try self.checkRecord(self.framed(input), kind)
        }
        try self.checkKeyText(input)
        try self.checkMeta(input)
        try hold(self.seal.open(input, under: input) == nil, "a seal that nobody has made")
    }

    /// As content in a frame that fits: version, length, zeros behind it.
    private static func framed(_ content: [UInt8]) -> [UInt8] {
        var writer = RecordWriter()
        writer.append(1 as UInt8)
        writer.append(octets: content)
        writer.pad(to: 64)
        return self.bytes(writer)
    }

    private static func bytes(_ writer: borrowing RecordWriter) -> [UInt8] {
        writer.withBytes { bytes in bytes.indices.map { bytes[$0] } }
    }

    private static func checkRecord(
        _ bytes: [UInt8], _ kind: StateRecord.Kind
    ) throws(Violation) {
        guard let record = try? StateRecord(kind, bytes.span) else { return }
        try hold(record.kind == kind, "a record of kind \(kind) is read as \(record.kind)")
        var writer = RecordWriter()
        record.write(to: &writer)
        try hold(self.bytes(writer) == bytes, "a record of kind \(kind) written in two ways")
        for length in [0, 4, 5, bytes.count / 2, bytes.count - 1] where length < bytes.count {
            let part = try? StateRecord(kind, bytes.span.extracting(first: length))
            try hold(part == nil, "a record cut to \(length) of \(bytes.count) is read")
        }
        let key = self.seal.key(record, of: "user:a")
        try hold(
            key.count == RecordSeal.keySize && RecordSeal.kind(of: key) == kind,
            "a key of \(key.count) bytes for a record of kind \(kind)")
        guard let sealed = try? self.seal.seal(record, under: key) else {
            throw Violation(description: "a record of kind \(kind) cannot be sealed")
        }
        try hold(
            self.seal.open(sealed, under: key) == record,
            "a record of kind \(kind) is another when its seal is opened")
        try self.restore(record)
    }

    /// Shows what was read to those who take it up again.
    private static func restore(_ record: StateRecord) throws(Violation) {
        var store = CredentialStore(keepsPermanent: true)
        switch record {
        case .principal, .transfer: break
        case .cookie(let cookie):
            var jar = CookieJar(suffixes: TopLevelSuffixes())
            _ = jar.restore([cookie], at: self.now)
            for kept in jar.all(at: self.now) {
                try hold(
                    CookieRules.broken(by: kept, TopLevelSuffixes()) == nil,
                    "a cookie is taken up against the rules")
            }
        case .credential(let credential, let space):
            store.restore([.stored(credential, space)])
        case .defaultUser(let user, let space):
            store.restore([.defaultChanged(user: user, space)])
        case .named(let credential):
            store.restore([.named(credential)])
            try hold(
                store.named(credential.name) == credential, "a credential's name is not its own")
        }
    }

    private static func checkKeyText(_ bytes: [UInt8]) throws(Violation) {
        guard let key = StateKey(bytes.span) else { return }
        var writer = RecordWriter()
        key.writeText(to: &writer)
        let written = self.bytes(writer)
        try hold(
            written == bytes || written == bytes + [ASCII.lf], "a key with two spellings")
    }

    private static func checkMeta(_ bytes: [UInt8]) throws(Violation) {
        if case .meta(let meta) = StateMeta.decode(bytes) {
            try hold(meta.encoded() == bytes, "a description that is written in two ways")
        }
        // With the sum that belongs to it, which no chance finds.
        let half = min(bytes.count, RecordSeal.saltSize)
        let meta = StateMeta(salt: Array(bytes[..<half]), check: Array(bytes[half...]))
        let isWhole = bytes.count == 2 * RecordSeal.saltSize
        try hold(
            StateMeta.decode(meta.encoded()) == (isWhole ? .meta(meta) : .damaged),
            "a description with \(bytes.count) bytes of salt and check")
    }
}
