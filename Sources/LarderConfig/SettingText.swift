/// A value that a setting can hold: it is read from one scalar of the file and written back as one.
///
/// Reading back what was written gives the same value; `larder config show` and the shipped file
/// rest on that.
package protocol SettingText: Sendable, Equatable {
    /// One word for the table: `size`, `time`, `address`.
    static var kind: String { get }
    /// What was expected instead, for messages: `a size such as 64 MiB`.
    static var expectation: String { get }
    init(settingText text: String) throws(SettingTextProblem)
    var settingText: String { get }
}

/// What is wrong with the text of one value.
package struct SettingTextProblem: Error, Equatable, Sendable {
    /// The end of a sentence that begins with the value.
    ///
    /// `has no unit`, say; nil: it merely does not fit the expectation.
    package var cause: String?
    /// What messages show in place of the value, where that may hold a secret.
    package var shown: String?

    package init(_ cause: String? = nil, showing shown: String? = nil) {
        self.cause = cause
        self.shown = shown
    }
}

/// A closed set of words: each case is written as its raw value.
package protocol SettingWord: SettingText, CaseIterable, RawRepresentable where RawValue == String {
}

extension SettingWord {
    package static var kind: String { "word" }

    package static var expectation: String {
        let words = self.allCases.map(\.rawValue)
        guard let last = words.last, words.count > 1 else { return words.joined() }
        return words.dropLast().joined(separator: ", ") + " or " + last
    }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard let word = Self(rawValue: text) else {
            let nearest = NearestName.of(text, among: Self.allCases.map(\.rawValue))
            throw SettingTextProblem(nearest.map { "is unknown (did you mean \"\($0)\"?)" })
        }
        self = word
    }

    package var settingText: String { self.rawValue }
}

extension Int: SettingText {
    package static var kind: String { "number" }
    package static var expectation: String { "a whole number" }

    package init(settingText text: String) throws(SettingTextProblem) {
        guard let value = Int(text) else { throw SettingTextProblem() }
        self = value
    }

    package var settingText: String { String(self) }
}

extension Bool: SettingText {
    package static var kind: String { "switch" }
    package static var expectation: String { "true or false" }

    /// YAML 1.1 knows more words for both; only those that cannot be anything else are taken.
    package init(settingText text: String) throws(SettingTextProblem) {
        switch text {
        case "true", "yes", "on": self = true
        case "false", "no", "off": self = false
        default: throw SettingTextProblem()
        }
    }

    package var settingText: String { self ? "true" : "false" }
}

/// A share of something, or a factor: a decimal number.
package struct Fraction: SettingText, Comparable {
    package var value: Double

    package init(_ value: Double) {
        self.value = value
    }

    package static var kind: String { "fraction" }
    package static var expectation: String { "a decimal number such as 0.1" }

    package init(settingText text: String) throws(SettingTextProblem) {
        let plain = text.utf8.allSatisfy { ($0 >= 0x30 && $0 <= 0x39) || $0 == UInt8(ascii: ".") }
        guard plain, let value = Double(text), value.isFinite else { throw SettingTextProblem() }
        self.value = value
    }

    /// Never with an exponent, as `0.00001` would have otherwise: none is read either.
    package var settingText: String {
        let text = "\(self.value)"
        let parts = text.split(separator: "e")
        guard parts.count == 2, let exponent = Int(parts[1]) else { return text }
        let mantissa = parts[0].split(separator: ".")
        let digits = mantissa.joined()
        // Where the point stands among the digits once the exponent has moved it.
        let point = (mantissa.first?.count ?? 0) + exponent
        let zeros = String(repeating: "0", count: max(-point, point - digits.count, 0))
        if point <= 0 { return "0." + zeros + digits }
        if point >= digits.count { return digits + zeros }
        return digits.prefix(point) + "." + digits.dropFirst(point)
    }

    package static func < (a: Fraction, b: Fraction) -> Bool { a.value < b.value }
}
