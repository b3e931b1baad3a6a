import Foundation
import URLLoading

/// Plays what the URL Loading System is known for against an origin of its own, and prints what
/// happened.
///
///     swift run url-loading-tour [NUMBER…]
///
/// Everything goes over loopback; files lie in a temporary directory that is removed at the end.
@main
struct Tour {
    static func main() async {
        // Chapter 6 starts the program a second time, for a request of its own.
        if CommandLine.arguments.dropFirst().first == SecondRun.argument {
            exit(await SecondRun.main(CommandLine.arguments))
        }
        // Tests look at what this does to the disk.
        if let configuration = LastingRun.kind(CommandLine.arguments.dropFirst().first) {
            exit(
                await LastingRun.main(configuration, CommandLine.arguments.dropFirst(2).first ?? "")
            )
        }
        let chosen = CommandLine.arguments.dropFirst().map { Int($0) ?? 0 }
        guard chosen.allSatisfy({ (1...Chapter.all.count).contains($0) }) else {
            print("usage: url-loading-tour [NUMBER…], numbers from 1 to \(Chapter.all.count)")
            exit(64)
        }
        do {
            let stage = try await Stage.open()
            var failures = 0
            for (index, chapter) in Chapter.all.enumerated()
            where chosen.isEmpty || chosen.contains(index + 1) {
                print("\n\(index + 1). \(chapter.title)")
                do {
                    try await chapter.play(stage)
                } catch {
                    failures += 1
                    print("   FAILED: \(error)")
                }
            }
            await stage.close()
            print(failures == 0 ? "\nAll as it should be." : "\n\(failures) failed.")
            exit(failures == 0 ? 0 : 1)
        } catch {
            print("The tour cannot begin: \(error)")
            exit(1)
        }
    }
}

/// One of the things that the URL Loading System is known for.
struct Chapter: Sendable {
    let title: String
    let play: @Sendable (Stage) async throws -> Void

    static let all: [Chapter] = [
        Chapter(title: "A download with progress", play: Downloads.progress),
        Chapter(title: "Cancel, and resume from resume data", play: Downloads.resuming),
        Chapter(title: "A delegate takes the body as it comes", play: Loading.incremental),
        Chapter(title: "Uploads from data, a file and a stream", play: Uploads.kinds),
        Chapter(title: "A default and an ephemeral session, side by side", play: Sessions.kinds),
        Chapter(title: "A cache hit after a restart of the program", play: SecondRun.play),
        Chapter(title: "A challenge is answered", play: Loading.challenge),
        Chapter(title: "A redirection is refused", play: Loading.redirection),
        Chapter(title: "A protocol of the program's own", play: OwnProtocol.play),
        Chapter(title: "Many tasks, few connections", play: Sessions.connections),
        Chapter(title: "Invalidation lets the delegate go", play: Sessions.invalidation),
    ]
}

/// What did not happen as it should have.
struct Unexpected: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Says what happened.
func say(_ text: String) {
    print("   \(text)")
}

/// Ends the chapter unless something is so.
func expect(_ condition: Bool, _ what: @autoclosure () -> String) throws {
    if !condition { throw Unexpected(what()) }
}

/// The origin, and a directory for what chapters write.
struct Stage: Sendable {
    let origin: TourOrigin
    let directory: URL

    static func open() async throws -> Stage {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("url-loading-tour-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        return Stage(origin: try await TourOrigin.start(), directory: directory)
    }

    func close() async {
        await self.origin.stop()
        // What cannot be removed lies where the system clears up.
        try? FileManager.default.removeItem(at: self.directory)
    }

    func url(_ path: String) throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(self.origin.port)\(path)") else {
            throw Unexpected("\(path) makes no URL")
        }
        return url
    }

    /// An ephemeral configuration: chapters that say nothing else leave nothing behind.
    func configuration() -> URLSessionConfiguration { .ephemeral }
}
