/// A length of time in the configuration: `30 s`, `5 min`, `1500 ms`, `0`.
package struct TimeSpan: SettingText, Comparable, Hashable {
    package var milliseconds: UInt64

    package init(milliseconds: UInt64) {
        self.milliseconds = milliseconds
    }

    package static func seconds(_ n: UInt64) -> TimeSpan { TimeSpan(milliseconds: n * 1000) }
    package static func minutes(_ n: UInt64) -> TimeSpan { .seconds(n * 60) }
    package static func hours(_ n: UInt64) -> TimeSpan { .minutes(n * 60) }
    package static func days(_ n: UInt64) -> TimeSpan { .hours(n * 24) }

    package var duration: Duration { .milliseconds(Int64(clamping: self.milliseconds)) }

    package static var kind: String { "time" }
    package static var expectation: String { "a time such as 1500 ms, 30 s, 5 min, 2 h or 1 d" }

    private static let units: [(name: String, milliseconds: UInt64)] = [
        ("ms", 1), ("s", 1000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    package init(settingText text: String) throws(SettingTextProblem) {
        let quantity = try Quantity(text)
        if quantity.unit.isEmpty {
            guard quantity.isZero else {
                throw SettingTextProblem("has no unit: write \"\(text) s\", for example")
            }
            self.milliseconds = 0
            return
        }
        guard let unit = Self.units.first(where: { $0.name == quantity.unit }) else {
            throw SettingTextProblem("has the unknown unit \"\(quantity.unit)\"")
        }
        guard let milliseconds = quantity.times(unit.milliseconds) else {
            throw SettingTextProblem("is too long")
        }
        self.milliseconds = milliseconds
    }

    /// The time in the largest unit that divides it.
    package var settingText: String {
        let unit = Self.units.last {
            self.milliseconds % $0.milliseconds == 0 && self.milliseconds >= $0.milliseconds
        }
        guard let unit else { return "0 s" }
        return "\(self.milliseconds / unit.milliseconds) \(unit.name)"
    }

    package static func < (a: TimeSpan, b: TimeSpan) -> Bool { a.milliseconds < b.milliseconds }
}
