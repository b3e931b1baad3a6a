import ArgumentParser
import FoundationEssentials
import LarderControl
import LarderCookies
import LarderDaemon
import LarderHTTP

/// The forms of files in which cookies come and go.
enum CookieFormat: String, CaseIterable, ExpressibleByArgument {
    /// Of curl, wget and others: see `NetscapeCookieFile`.
    case netscape
    case json

    /// By the end of a file's name.
    static func of(_ file: String) -> CookieFormat {
        file.lowercased().hasSuffix(".json") ? .json : .netscape
    }
}

/// The cookies of a file, each with its place in it.
struct CookieFile {
    struct Entry {
        /// A line of a Netscape file; an entry of a JSON array, from 1.
        var place: Int
        var cookie: CookieRecord
    }

    struct Problem: Equatable {
        var place: Int
        var cause: String
    }

    var entries: [Entry] = []
    var problems: [Problem] = []

    /// More than any jar can hold.
    static let largest = 64 << 20

    init(_ bytes: [UInt8], _ format: CookieFormat, name: String, now: Int64) throws(CommandFailure)
    {
        switch format {
        case .netscape: self.readLines(bytes, now: now)
        case .json: try self.readJSON(bytes, name: name, now: now)
        }
    }

    /// Line by line, so that every cookie has the number of its own.
    private mutating func readLines(_ bytes: [UInt8], now: Int64) {
        let moment = Timestamp(microseconds: now)
        let lines = bytes.split(separator: ASCII.lf, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let contents = NetscapeCookieFile.parse(Array(line), now: moment)
            for problem in contents.problems {
                self.problems.append(Problem(place: index + 1, cause: problem.fault.rawValue))
            }
            for cookie in contents.cookies {
                self.add(CookieRecord(cookie, reveals: true), at: index + 1)
            }
        }
    }

    private mutating func readJSON(
        _ bytes: [UInt8], name: String, now: Int64
    ) throws(CommandFailure) {
        let decoder = JSONDecoder()
        let data = Data(bytes)
        guard
            let list = (try? decoder.decode([Lenient].self, from: data))
                ?? (try? decoder.decode(Wrapped.self, from: data))?.cookies
        else {
            throw CommandFailure(
                .data, "\(name): no JSON array of cookies",
                remedy: "\"larder cookies export x.json\" writes one")
        }
        for (index, entry) in list.enumerated() {
            do throws(CookieJSON.Fault) {
                guard let cookie = entry.cookie else {
                    throw CookieJSON.Fault(text: "no object with domain, name and value")
                }
                self.add(try cookie.record(now: now), at: index + 1)
            } catch {
                self.problems.append(Problem(place: index + 1, cause: error.text))
            }
        }
    }

    private mutating func add(_ cookie: CookieRecord, at place: Int) {
        guard CookieBatch.fits(cookie) else {
            let reason = CookieText.reason(CookieRefusal.tooLarge.rawValue)
            self.problems.append(Problem(place: place, cause: reason))
            return
        }
        self.entries.append(Entry(place: place, cookie: cookie))
    }

    /// One bad entry does not spoil the others.
    private struct Lenient: Decodable {
        let cookie: CookieJSON?

        init(from decoder: any Decoder) throws {
            self.cookie = try? CookieJSON(from: decoder)
        }
    }

    /// As Playwright keeps a browser's state.
    private struct Wrapped: Decodable {
        var cookies: [Lenient]
    }

    // MARK: Writing

    /// The bytes of a file, and the names of those that its form cannot hold.
    static func write(
        _ cookies: [CookieRecord], _ format: CookieFormat, now: Int64
    ) throws(CommandFailure) -> (bytes: [UInt8], leftOut: [String]) {
        switch format {
        case .netscape:
            let moment = Timestamp(microseconds: now)
            let file = NetscapeCookieFile.write(cookies.compactMap { Cookie($0, at: moment) })
            return (file.bytes, file.leftOut.map { String(decoding: $0.name, as: UTF8.self) })
        case .json:
            var lines: [String] = []
            for cookie in cookies { lines.append(try JSONLine.of(CookieJSON(cookie))) }
            let text = lines.isEmpty ? "[]\n" : "[\n\(lines.joined(separator: ",\n"))\n]\n"
            return (Array(text.utf8), [])
        }
    }
}
