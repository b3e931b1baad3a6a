import ArgumentParser
import LarderControl
import LarderCookies
import LarderDaemon
import LarderHTTP

/// The forms of files in which cookies come and go.
enum CookieFormat: String, CaseIterable, ExpressibleByArgument {
    /// The format of curl, wget and others: see `NetscapeCookieFile`.
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
            // Created one after the other, as that is the order in which they are sent (RFC 6265bis §5.8.3).
            let contents = NetscapeCookieFile.parse(
                Array(line), now: moment + .microseconds(index))
            for problem in contents.problems {
                self.problems.append(Problem(place: index + 1, cause: problem.fault.rawValue))
            }
            for cookie in contents.cookies { self.add(cookie, at: index + 1) }
        }
    }

    private mutating func readJSON(
        _ bytes: [UInt8], name: String, now: Int64
    ) throws(CommandFailure) {
        let contents: CookieJSON.Contents
        do throws(CookieJSON.TextError) {
            contents = try CookieJSON.parse(bytes, now: Timestamp(microseconds: now))
        } catch {
            let cause =
                switch error {
                case .syntax(let offset): "no JSON from byte \(offset) on"
                case .noArray: "no JSON array of cookies"
                }
            throw CommandFailure(
                .data, "\(name): \(cause)",
                remedy: "\"larder cookies export x.json\" writes one")
        }
        for problem in contents.problems {
            self.problems.append(Problem(place: problem.element, cause: problem.fault.rawValue))
        }
        // Every element has become a cookie or a problem.
        let faulty = Set(contents.problems.map(\.element))
        let count = contents.cookies.count + contents.problems.count
        let places = (0..<count).map { $0 + 1 }.filter { !faulty.contains($0) }
        for (place, cookie) in zip(places, contents.cookies) { self.add(cookie, at: place) }
    }

    private mutating func add(_ cookie: Cookie, at place: Int) {
        let cookie = CookieRecord(cookie, reveals: true)
        guard CookieBatch.fits(cookie) else {
            let reason = CookieText.reason(CookieRefusal.tooLarge.rawValue)
            self.problems.append(Problem(place: place, cause: reason))
            return
        }
        self.entries.append(Entry(place: place, cookie: cookie))
    }

    // MARK: Writing

    /// The bytes of a file, and the names of those that its form cannot hold.
    static func write(
        _ cookies: [CookieRecord], _ format: CookieFormat, now: Int64
    ) -> (bytes: [UInt8], leftOut: [String]) {
        let moment = Timestamp(microseconds: now)
        let cookies = cookies.compactMap { Cookie($0, at: moment) }
        switch format {
        case .netscape:
            let file = NetscapeCookieFile.write(cookies)
            return (file.bytes, file.leftOut.map { String(decoding: $0.name, as: UTF8.self) })
        case .json:
            return (CookieJSON.write(cookies), [])
        }
    }
}
