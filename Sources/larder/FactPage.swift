/// Facts below each other, for people: names in one column, values in another.
enum FactPage {
    typealias Fact = (name: String, value: String)

    /// A line for each fact; what would harm a terminal is shown as text.
    static func lines(_ facts: [Fact]) -> [String] {
        let width = facts.map(\.name.count).max() ?? 0
        return facts.map { name, value in
            let room = String(repeating: " ", count: width - name.count + 2)
            return "\(name)\(room)\(Printable.text(value))"
        }
    }

    /// A running proxy's process, and since when it is there.
    static func process(_ pid: Int32, started: Int64, nowMicroseconds now: Int64) -> String {
        let up = now.subtractingReportingOverflow(started)
        let time = Human.time(milliseconds: up.overflow ? 0 : up.partialValue / 1000)
        return "process \(pid), for \(time), since \(Human.date(microseconds: started))"
    }
}
