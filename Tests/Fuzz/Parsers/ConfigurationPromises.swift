@testable import LarderConfig

/// The text of a configuration: each kind of value by itself, and whole files.
enum ConfigurationPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        for line in input.textLines {
            let text = String(decoding: line, as: UTF8.self)
            try self.stable(ByteSize.self, text)
            try self.stable(TimeSpan.self, text)
            try self.stable(Fraction.self, text)
            try self.stable(Int.self, text)
            try self.stable(Bool.self, text)
            try self.stable(ListenAddress.self, text)
            try self.stable(PortRange.self, text)
            try self.stable(ClientPattern.self, text)
            try self.stable(DestinationPattern.self, text)
            try self.stable(MethodName.self, text)
            try self.stable(Token.self, text)
            try self.stable(SessionName.self, text)
            try self.checkAddress(text)
            try self.checkGlob(text)
            _ = NearestName.of(text, among: ["listeners", "sessions", text, ""])
        }
        try self.checkFile(input.text)
    }

    /// What a text means is what the text that is written for it means.
    private static func stable<Value: SettingText>(
        _ type: Value.Type, _ text: String
    ) throws(Violation) {
        guard let value = try? Value(settingText: text) else { return }
        let written = value.settingText
        let again = try? Value(settingText: written)
        try hold(
            again == value, "\(Value.kind) \"\(text)\" is written as \"\(written)\"")
    }

    private static func checkAddress(_ text: String) throws(Violation) {
        if let address = IPAddress(text) {
            try hold(
                IPAddress(address.description) == address, "\(text) is written as \(address)")
            try hold(
                address.family == .v6 || address.value <= 0xFFFF_FFFF, "\(text) is \(address)")
        }
        if let block = AddressBlock(text) {
            try hold(
                AddressBlock(block.description) == block && block.contains(block.base),
                "\(text) is written as \(block)")
        }
    }

    private static func checkGlob(_ text: String) throws(Violation) {
        let glob = Glob(text)
        if !text.contains("*"), !text.contains("?") {
            try hold(glob.matches(text), "\(text) does not match itself")
        }
        try hold(Glob("*").matches(text), "* does not match \(text)")
        try hold(Glob(text + "*").matches(text), "\(text)* does not match \(text)")
        try hold(Glob("*" + text).matches("a" + text), "*\(text) does not match a\(text)")
    }

    private static func checkFile(_ text: String) throws(Violation) {
        let environment = ProcessEnvironment(["HOME": "/h"])
        do throws(ConfigurationError) {
            _ = try Configuration.parse(text, file: "f", environment: environment)
        } catch {
            try hold(!error.problems.isEmpty, "refused without a reason")
        }
    }
}
