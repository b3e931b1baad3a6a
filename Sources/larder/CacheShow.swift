import ArgumentParser
import Crypto

/// The verb `larder cache show URL`.
struct CacheShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show what is stored for a URL, every variant of it.")

    @Argument(help: "The URL.", transform: urlArgument)
    var url: String

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var session: SessionOption
    @OptionGroup var principal: PrincipalOption

    @Flag(help: "Write the body of the most recent variant, as it is stored, and nothing else.")
    var body = false

    @Flag(help: "Print one JSON object a line.")
    var json = false

    func validate() throws {
        guard !self.body || !self.json else {
            throw ValidationError("--body writes the body alone; leave out --json")
        }
    }

    func run() async throws {
        let view = try CacheView(self.options, self.session, principal: self.principal)
        let copies = try CacheCopies(of: self.url, in: view)
        let objects = try copies.all()
        guard let latest = objects.first else {
            throw CommandFailure(
                .nothingFound, "nothing is stored for \(self.url)",
                remedy: "\"larder cache list\" shows what is")
        }
        if self.body { return try copies.readBody(of: latest) { try Output.bytes($0) } }
        let now = wallClockMicroseconds()
        for (index, object) in objects.enumerated() {
            var object = object
            object.sha256 = Self.digest(of: object, in: copies)
            if self.json {
                try Output.line(try JSONLine.of(object))
                continue
            }
            if index > 0 { try Output.line("") }
            for line in CacheShowText.lines(object, nowMicroseconds: now) { try Output.line(line) }
        }
    }

    /// In hexadecimal; nil where the body is damaged or was removed meanwhile.
    private static func digest(of object: CacheObject, in copies: CacheCopies) -> String? {
        if object.partial != nil { return nil }
        var hash = SHA256()
        do {
            try copies.readBody(of: object) { hash.update(data: $0) }
        } catch {
            return nil
        }
        return hash.finalize().map { byte in
            let hex = String(byte, radix: 16)
            return byte < 16 ? "0\(hex)" : hex
        }.joined()
    }
}
