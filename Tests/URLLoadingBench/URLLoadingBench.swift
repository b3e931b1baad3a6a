import Foundation

#if FOUNDATION_NETWORKING
    import FoundationNetworking
#else
    import URLLoading
#endif

/// Performs one kind of work through a `URLSession` and says in JSON what it took.
///
///     URLLoadingBench KIND URL COUNT
///
/// Compiled twice by `scripts/bench url-loading`, as it stands: against `URLLoading`, and with
/// `FOUNDATION_NETWORKING` against Foundation's own classes. Each kind runs in a process of its own,
/// so that the peak of its memory is its own, too.
@main
struct URLLoadingBench {
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let kind = Kind(rawValue: arguments[1]),
            let url = URL(string: arguments[2]), let count = Int(arguments[3]), count > 0
        else {
            let kinds = Kind.allCases.map(\.rawValue).joined(separator: "|")
            FileHandle.standardError.write(Data("usage: URLLoadingBench \(kinds) URL COUNT\n".utf8))
            exit(64)
        }
        do {
            let figures = try await Figures.measuring { try await kind.perform(url, count) }
            print(figures.json)
        } catch {
            FileHandle.standardError.write(Data("URLLoadingBench: \(error)\n".utf8))
            exit(1)
        }
    }
}

/// What is measured.
enum Kind: String, CaseIterable {
    /// Small GETs, one after the other.
    case sequential
    /// Small GETs, 64 at a time.
    case concurrent
    /// The same URL again and again, which a cache may answer.
    case cached
    /// A large body as one `Data`.
    case memory
    /// A large body in a file.
    case file
    /// A large body to a delegate that takes its time over each piece.
    case slow

    /// Off the main actor: otherwise it would depend on the language mode whose executor the loops are
    /// on, and the two libraries' programs, of different modes, would not be the same.
    ///
    /// - Returns: the bytes of bodies that came.
    @concurrent func perform(_ url: URL, _ count: Int) async throws -> Int {
        switch self {
        case .sequential: try await Loads.sequential(url, count)
        case .concurrent: try await Loads.concurrent(url, count, atOnce: 64)
        case .cached: try await Loads.cached(url, count)
        case .memory: try await Loads.memory(url)
        case .file: try await Loads.file(url)
        case .slow: try await Loads.slow(url)
        }
    }
}
