import ArgumentParser
import LarderConfig

/// What is said of a verb that there is none of.
enum NearestVerb {
    /// nil where all the verbs among the arguments are right, so that something else is wrong.
    ///
    /// - Parameter arguments: without the program's name.
    static func failure(of arguments: [String]) -> CommandFailure? {
        var path = Larder._commandName
        var command: any ParsableCommand.Type = Larder.self
        for argument in arguments {
            let verbs = command.configuration.subcommands
            if verbs.isEmpty || argument.hasPrefix("-") { return nil }
            guard let verb = verbs.first(where: { $0._commandName == argument }) else {
                return Self.failure(argument, after: path, among: verbs.map { $0._commandName })
            }
            path += " \(argument)"
            command = verb
        }
        return nil
    }

    private static func failure(
        _ argument: String, after path: String, among verbs: [String]
    ) -> CommandFailure? {
        // Every command has it, though none names it.
        if argument == "help" { return nil }
        return CommandFailure(
            .usage, "\"\(path)\" has no verb \"\(argument)\"",
            remedy: NearestName.of(argument, among: verbs + ["help"]).map {
                "did you mean \"\(path) \($0)\"?"
            } ?? "there are: \(verbs.joined(separator: ", "))")
    }
}
