/// A metric in the text format that Prometheus and its collectors read.
///
/// Metrics keep their names and meanings.
struct PrometheusMetric {
    enum Kind: String { case gauge, counter }

    typealias Label = (name: String, value: String)

    /// Without the `larder_` before it.
    let name: String
    let kind: Kind
    let help: String
    let samples: [(labels: [Label], value: UInt64)]

    init(
        _ name: String, _ kind: Kind, _ help: String, _ samples: [(labels: [Label], value: UInt64)]
    ) {
        self.name = name
        self.kind = kind
        self.help = help
        self.samples = samples
    }

    /// One with a single value and no label of its own.
    init(_ name: String, _ kind: Kind, _ help: String, _ value: UInt64) {
        self.init(name, kind, help, [([], value)])
    }

    /// The metrics' lines, but for those without a sample.
    ///
    /// - Parameter common: labels that come before each sample's own.
    static func lines(_ metrics: [PrometheusMetric], common: [Label] = []) -> [String] {
        metrics.filter { !$0.samples.isEmpty }.flatMap { metric in
            [
                "# HELP larder_\(metric.name) \(metric.help)",
                "# TYPE larder_\(metric.name) \(metric.kind.rawValue)",
            ]
                + metric.samples.map { labels, value in
                    "larder_\(metric.name)\(Self.text(of: common + labels)) \(value)"
                }
        }
    }

    private static func text(of labels: [Label]) -> String {
        guard !labels.isEmpty else { return "" }
        let parts = labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }
        return "{\(parts.joined(separator: ","))}"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            .replacing("\n", with: "\\n")
    }
}
