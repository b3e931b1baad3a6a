import ArgumentParser
import LarderConfig
import LarderControl

/// The verb `larder cache purge …`.
struct CachePurge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge", abstract: "Remove stored responses; prints how many.",
        discussion: """
            Exit status: 0 also where there was nothing to remove; 74 where the disk could not be told, \
            so that what was removed may come back at the next start.
            """)

    @OptionGroup var selection: SelectionArguments

    @OptionGroup var principal: PrincipalOption
    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption

    func run() async throws {
        let selection = try self.selection.selection()
        let view = try CacheView(self.options, self.session, needsDisk: false)
        var removed = 0
        // A large cache takes its time; the proxy tells that it is still at it.
        let name = view.session.name.text
        let principal = try self.principal.principal(in: view.session)
        var isAsked = false
        do {
            let request = ControlRequest.purge(
                session: name, selection, principal: principal)
            isAsked = try view.ask(request, patience: .seconds(60)) {
                if case .purged(let outcome) = $0 { removed += outcome.removed }
                return true
            }
        } catch let refusal as ControlRefusal where refusal.failure.code == .noSuchSession {
            // The proxy serves other sessions: this one's file is nobody's but ours.
        }
        if !isAsked {
            let disk = try view.reading()
            removed = try await disk?.purge(selection, principal: principal) ?? 0
        }
        try Output.line("\(removed)")
    }
}
