package import LarderHTTP

/// Puts what stands for secrets in their place, wherever requests are kept or compared.
///
/// The same for equal secrets under one key, and telling nothing of them. Any thread.
package struct FieldSealer: Sendable {
    private let partition: String
    private let digest: (@Sendable ([UInt8]) -> [UInt8])?

    /// The fields in which a client itself sends secrets.
    private static let secrets = [KnownField.authorization, .cookie]

    /// - Parameters:
    ///   - partition: whose secrets they are, where those of several are to be different things.
    ///   - digest: keyed; nil: each secret is another one each time, which is safe and answers nothing.
    package init(partition: String = "", digest: (@Sendable ([UInt8]) -> [UInt8])?) {
        self.partition = partition
        self.digest = digest
    }

    /// Whether a client sends secrets in this field.
    package static func isSecret(_ field: KnownField) -> Bool { self.secrets.contains(field) }

    /// Whether any of these fields is one in which a client sends secrets.
    static func hasSecret(_ fields: Fields) -> Bool {
        fields.lines.contains { self.isSecret($0.known) }
    }

    /// What stands for a secret: the same for the same one, and telling nothing of it.
    ///
    /// - Parameter label: of the field, and of whatever else makes equal secrets different things.
    package func value(_ label: String, _ secret: [UInt8]) -> [UInt8] {
        guard let digest = self.digest else {
            return Array("sealed-".utf8) + SessionCredentials.randomNonce()
        }
        let digits = Array("0123456789abcdef".utf8)
        let octets = Array(self.partition.utf8) + [0] + Array(label.utf8) + [0] + secret
        return Array("sealed-".utf8)
            + digest(octets).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }

    /// Seals what a client sends itself.
    ///
    /// - Parameter others: fields that are left as they are.
    /// - Returns: the lines that were taken out.
    @discardableResult
    package func sealClients(
        _ fields: inout Fields, besides others: [FieldName] = []
    ) -> [(name: String, value: [UInt8])] {
        var lines: [(name: String, value: [UInt8])] = []
        for known in Self.secrets {
            let name = FieldName(known)
            guard fields.contains(name), !others.contains(name) else { continue }
            let values = fields.values(name).map { Array($0) }
            fields.remove(name)
            let text = known == .cookie ? "Cookie" : "Authorization"
            lines += values.map { (text, $0) }
            fields.append(text, self.value(name.lowercased, Array(values.joined(separator: [0]))))
        }
        return lines
    }
}
