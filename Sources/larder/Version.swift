import ArgumentParser

/// The release.
enum Release {
    static let number = "0.1.0"
    static var line: String { "larder \(Self.number)" }
}

/// The verb `larder version`.
struct Version: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Print the release.")

    func run() throws { try Output.line(Release.line) }
}
