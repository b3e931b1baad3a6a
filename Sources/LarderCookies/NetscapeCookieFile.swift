package import LarderHTTP

/// The text file in which curl, wget and browsers exchange cookies.
///
/// A cookie a line, seven columns with a tab between: domain, whether it holds for names below
/// (`TRUE`), path, whether it is secure, expiry in seconds since 1970 (0, or nothing as Python has
/// it: with the session), name, value. `#HttpOnly_` before the domain marks such a cookie, any other
/// `#` begins a comment. The format knows neither `SameSite` nor the moment of creation.
package enum NetscapeCookieFile {
    /// What is wrong with a line, which is then left out.
    package enum Fault: String, Sendable, CaseIterable {
        case columns = "needs six or seven columns with a tab between"
        case domain = "the domain is empty or no host name"
        case flag = "the second and fourth column must be TRUE or FALSE"
        case path = "the path does not begin with a slash"
        case expiry = "the expiry is no number of seconds"
    }

    package struct Problem: Sendable, Equatable {
        /// Counts from 1.
        package let line: Int
        package let fault: Fault
    }

    package struct Contents: Sendable, Equatable {
        package var cookies: [Cookie] = []
        package var problems: [Problem] = []
    }

    private static let httpOnly = "#HttpOnly_"
    private static let header = "# Netscape HTTP Cookie File\n"

    // MARK: Reading

    /// Reads a file's bytes; whether a jar takes the cookies is for the jar to say.
    ///
    /// - Parameter now: the moment of creation that the cookies get.
    package static func parse(_ bytes: [UInt8], now: Timestamp) -> Contents {
        var contents = Contents()
        var number = 0
        // Some editors write a byte order mark.
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        for raw in text.split(separator: ASCII.lf, omittingEmptySubsequences: false) {
            number += 1
            var line = raw
            if line.last == ASCII.cr { line.removeLast() }
            let isHTTPOnly = line.starts(with: self.httpOnly.utf8)
            if isHTTPOnly { line = line.dropFirst(self.httpOnly.utf8.count) }
            guard line.first != UInt8(ascii: "#"), !line.allSatisfy(ASCII.isOWS) else { continue }
            do throws(LineError) {
                contents.cookies.append(try self.cookie(line, isHTTPOnly, now))
            } catch {
                contents.problems.append(Problem(line: number, fault: error.fault))
            }
        }
        return contents
    }

    private struct LineError: Error {
        let fault: Fault
    }

    private static func cookie(
        _ line: FieldValue, _ isHTTPOnly: Bool, _ now: Timestamp
    ) throws(LineError) -> Cookie {
        // What follows the sixth tab is the value, tabs and all; curl leaves out an empty one.
        let columns = line.split(
            separator: ASCII.tab, maxSplits: 6, omittingEmptySubsequences: false)
        guard columns.count >= 6 else { throw LineError(fault: .columns) }
        guard let domain = CookieFileDomain(columns[0]) else { throw LineError(fault: .domain) }
        guard let withSubdomains = self.flag(columns[1]), let isSecure = self.flag(columns[3])
        else { throw LineError(fault: .flag) }
        guard columns[2].first == UInt8(ascii: "/") else { throw LineError(fault: .path) }
        guard let expiry = self.seconds(columns[4]) else { throw LineError(fault: .expiry) }
        return Cookie(
            name: Array(columns[5]), value: columns.count > 6 ? Array(columns[6]) : [],
            domain: domain.name, isHostOnly: !withSubdomains,
            path: String(decoding: columns[2], as: UTF8.self),
            isSecure: isSecure, isHTTPOnly: isHTTPOnly, creation: now,
            expiry: expiry == 0 ? nil : Timestamp(seconds: expiry))
    }

    private static func flag(_ column: FieldValue) -> Bool? {
        if column.spells("true") { return true }
        return column.spells("false") ? false : nil
    }

    /// Digits, perhaps with a fraction, which some programs write and nobody needs; saturates.
    private static func seconds(_ column: FieldValue) -> Int64? {
        if column.isEmpty { return 0 }
        let parts = column.split(
            separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, !whole.isEmpty,
            parts.allSatisfy({ $0.allSatisfy(ASCII.isDigit) })
        else { return nil }
        var seconds: Int64 = 0
        for digit in whole {
            let (product, overflow) = seconds.multipliedReportingOverflow(by: 10)
            let (sum, overflowed) = product.addingReportingOverflow(Int64(digit - 0x30))
            if overflow || overflowed { return .max }
            seconds = sum
        }
        return seconds
    }

    // MARK: Writing

    /// The file's bytes, and the cookies that the format cannot hold: those with a tab in name or
    /// path, or with a byte anywhere that ends a line.
    package static func write(
        _ cookies: [Cookie]
    ) -> (bytes: [UInt8], leftOut: [Cookie.Identity]) {
        var bytes = Array(self.header.utf8)
        var leftOut: [Cookie.Identity] = []
        for cookie in cookies {
            guard !(cookie.name + cookie.path.utf8).contains(where: self.ends),
                !cookie.value.contains(where: self.endsLine)
            else {
                leftOut.append(cookie.identity)
                continue
            }
            if cookie.isHTTPOnly { bytes += Array(self.httpOnly.utf8) }
            // A moment in or before the first second of 1970 would read as "with the session".
            let expiry = cookie.expiry.map { max(1, $0.seconds) } ?? 0
            let columns = [
                (cookie.isHostOnly ? "" : ".") + CookieFileDomain.bare(cookie.domain),
                cookie.isHostOnly ? "FALSE" : "TRUE", cookie.path,
                cookie.isSecure ? "TRUE" : "FALSE", String(expiry), "",
            ]
            bytes += Array(columns.joined(separator: "\t").utf8)
            bytes += cookie.name + [ASCII.tab] + cookie.value + [ASCII.lf]
        }
        return (bytes, leftOut)
    }

    private static func ends(_ byte: UInt8) -> Bool { byte == ASCII.tab || self.endsLine(byte) }

    private static func endsLine(_ byte: UInt8) -> Bool { byte == ASCII.lf || byte == ASCII.cr }
}
