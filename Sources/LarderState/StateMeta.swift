import Crypto

/// What a state file says of itself, in clear: its format, its salt, and which key it wants.
///
/// ```
/// "larder state" (12 bytes)  format (4)  salt (32)  check of the key (32)  SHA-256 of all that (8)
/// ```
///
/// The sum tells damage from a wrong key, which nobody may take for damage.
struct StateMeta: Sendable, Equatable {
    static let format: UInt32 = 1
    static let key = Array("meta".utf8)
    private static let magic = Array("larder state".utf8)
    private static let sumSize = 8
    private static let size = 12 + 4 + RecordSeal.saltSize + SHA256.byteCount + Self.sumSize

    enum Finding: Sendable, Equatable {
        case meta(StateMeta)
        /// The state of another release, by the number of its format.
        case otherFormat(UInt32)
        case damaged
    }

    let salt: [UInt8]
    let check: [UInt8]

    /// For a new file, or a new key.
    static func make(for key: StateKey) -> (meta: StateMeta, seal: RecordSeal) {
        var generator = SystemRandomNumberGenerator()
        let salt = (0..<RecordSeal.saltSize).map { _ in
            UInt8.random(in: .min ... .max, using: &generator)
        }
        let seal = RecordSeal(key, salt: salt)
        return (StateMeta(salt: salt, check: seal.check), seal)
    }

    /// The seal of the file, if this is its key.
    func seal(with key: StateKey) -> RecordSeal? {
        let seal = RecordSeal(key, salt: self.salt)
        return seal.check == self.check ? seal : nil
    }

    func encoded() -> [UInt8] {
        var writer = RecordWriter()
        writer.append(raw: Self.magic.span)
        writer.append(number: Self.format)
        writer.append(raw: self.salt.span)
        writer.append(raw: self.check.span)
        let bytes = writer.withBytes { unsafe $0.withUnsafeBufferPointer { unsafe Array($0) } }
        return bytes + Self.sum(bytes)
    }

    static func decode(_ bytes: [UInt8]) -> Finding {
        guard bytes.count >= Self.magic.count + 4 + Self.sumSize, bytes.starts(with: Self.magic),
            Self.sum(Array(bytes.dropLast(Self.sumSize))) == Array(bytes.suffix(Self.sumSize))
        else { return .damaged }
        var reader = RecordReader()
        let format = try? reader.number(bytes.span.extracting(Self.magic.count...), as: UInt32.self)
        guard let format, format == Self.format else { return .otherFormat(format ?? 0) }
        guard bytes.count == Self.size else { return .damaged }
        let rest = bytes.dropFirst(Self.magic.count + 4)
        return .meta(
            StateMeta(
                salt: Array(rest.prefix(RecordSeal.saltSize)),
                check: Array(rest.dropFirst(RecordSeal.saltSize).prefix(SHA256.byteCount))))
    }

    private static func sum(_ bytes: [UInt8]) -> [UInt8] {
        Array(Array(SHA256.hash(data: bytes)).prefix(Self.sumSize))
    }
}
