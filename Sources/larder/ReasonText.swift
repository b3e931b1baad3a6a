import LarderConfig
import LarderPolicy

/// What `larder explain --reasons` lists: the words for the rules, as `Cache-Status` and the log have them.
enum ReasonText {
    /// One JSON object.
    struct Row: Encodable {
        var reason: String
        var section: String
        var remedy: String

        init(_ reason: PolicyReason) {
            self.reason = reason.rawValue
            self.section = reason.section
            self.remedy = reason.remedy
        }
    }

    /// - Parameter width: columns at most.
    static func lines(_ reason: PolicyReason, width: Int) -> [String] {
        ["\(reason.rawValue) (\(reason.section))"]
            + Prose.wrap(reason.remedy, width: width - 4).map { "    \($0)" }
    }
}
