import FoundationEssentials

/// One JSON value a line, for programs.
enum JSONLine {
    static func of(_ value: some Encodable) throws(CommandFailure) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else {
            throw CommandFailure(.software, "a value cannot be written as JSON")
        }
        return String(decoding: data, as: UTF8.self)
    }
}
