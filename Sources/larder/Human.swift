/// Sizes and times for people.
enum Human {
    /// Reads as `512 B`, `1.5 KiB`, `10 GiB`.
    static func size(_ bytes: UInt64) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
        var unit = 0
        var whole = bytes
        var rest: UInt64 = 0
        while whole >= 1024, unit < units.count - 1 {
            rest = whole % 1024
            whole /= 1024
            unit += 1
        }
        let tenths = rest * 10 / 1024
        return unit == 0 || tenths == 0 || whole >= 100
            ? "\(whole) \(units[unit])" : "\(whole).\(tenths) \(units[unit])"
    }

    /// `850 ms`, `45 s`, `12 min`, `3.5 h`, `4 d`; negative times with a minus before them.
    static func time(milliseconds: Int64) -> String {
        if milliseconds < 0 {
            return "-\(Self.time(milliseconds: milliseconds == .min ? .max : -milliseconds))"
        }
        let steps: [(unit: String, length: Int64, next: Int64)] = [
            ("ms", 1, 1000), ("s", 1000, 120_000), ("min", 60_000, 7_200_000),
            ("h", 3_600_000, 172_800_000), ("d", 86_400_000, 365 * 2 * 86_400_000),
        ]
        let (unit, length) =
            steps.first { milliseconds < $0.next }.map { ($0.unit, $0.length) }
            ?? ("y", 365 * 86_400_000)
        let whole = milliseconds / length
        let tenths = milliseconds % length * 10 / length
        let isCoarse = unit == "h" || unit == "d" || unit == "y"
        return isCoarse && whole < 10 && tenths > 0
            ? "\(whole).\(tenths) \(unit)" : "\(whole) \(unit)"
    }

    /// `75.0%`; a dash where there is no whole.
    static func share(_ part: UInt64, of whole: UInt64) -> String {
        guard whole > 0 else { return "-" }
        let promille = UInt64(Double(min(part, whole)) / Double(whole) * 1000)
        return "\(promille / 10).\(promille % 10)%"
    }

    /// Reads as `1,234,567`.
    static func count(_ number: UInt64) -> String {
        var digits = Array(String(number))
        var place = digits.count - 3
        while place > 0 {
            digits.insert(",", at: place)
            place -= 3
        }
        return String(digits)
    }

    /// Reads as `1 request`, `2 requests`.
    static func count(_ number: UInt64, _ noun: String) -> String {
        "\(Self.count(number)) \(noun)\(number == 1 ? "" : "s")"
    }

    /// Reads as `2026-01-02 03:04:05 UTC`.
    static func date(microseconds: Int64) -> String {
        var seconds = microseconds / 1_000_000
        if microseconds % 1_000_000 < 0 { seconds -= 1 }
        return CivilDate(seconds: seconds).description + " UTC"
    }
}

/// Text of strangers, made safe to show: control characters, which a terminal would act on, as `\xXX`
/// or `\u{…}`.
enum Printable {
    static func text(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: Self.isHarmful) else { return text }
        var safe = ""
        for scalar in text.unicodeScalars {
            if Self.isHarmful(scalar) {
                safe += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                safe.unicodeScalars.append(scalar)
            }
        }
        return safe
    }

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
