import ArgumentParser

/// In which form a verb prints figures; neither flag: for people.
struct FigureForm: ParsableArguments {
    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(
        help:
            "In the text format of Prometheus, as the textfile collector of node_exporter takes it."
    )
    var prometheus = false

    func validate() throws {
        if self.json, self.prometheus {
            throw ValidationError("--json and --prometheus are two forms; give one of them")
        }
    }
}
