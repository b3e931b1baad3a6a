import Foundation
import LarderHTTP

/// A `data:` URL taken apart, by RFC 2397 and the rules that WHATWG's Fetch standard made of it.
struct DataURL {
    /// In lower case; `text/plain` where none is given, or none that is one.
    let mediaType: String
    /// As it is written; nil where none is given.
    let charset: String?
    let data: Data

    /// nil: no comma, escapes before it, which Foundation refuses, or Base64 that is none.
    ///
    /// A space and a quotation mark may be escaped there: `URL(string:)` does that to what programs write.
    init?(_ text: String) {
        let all = Array(text.utf8.prefix { $0 != UInt8(ascii: "#") })
        let scheme = Array("data:".utf8)
        guard all.count >= scheme.count,
            zip(all, scheme).allSatisfy({ ASCII.lowercased($0) == $1 }),
            let comma = all.firstIndex(of: ASCII.comma)
        else { return nil }
        guard let written = Self.written(all[scheme.count..<comma]) else { return nil }
        var header = written[...].trimmingOWS()
        let isBase64 = Self.takeBase64(from: &header)
        let bytes = Self.unescaped(all[(comma + 1)...])
        if isBase64 {
            guard let data = Self.base64(bytes) else { return nil }
            self.data = data
        } else {
            self.data = Data(bytes)
        }
        let type = ParameterizedValue(String(decoding: header, as: UTF8.self))
        self.mediaType = type.mediaType.flatMap { Self.isMediaType($0) ? $0 : nil } ?? "text/plain"
        self.charset = type.first("charset")
    }

    /// The header as a program wrote it; nil where there are escapes of other characters.
    private static func written(_ header: ArraySlice<UInt8>) -> [UInt8]? {
        guard header.contains(UInt8(ascii: "%")) else { return Array(header) }
        let unescaped = String(decoding: header, as: UTF8.self)
            .replacing("%20", with: " ").replacing("%22", with: "\"")
        return unescaped.contains("%") ? nil : Array(unescaped.utf8)
    }

    /// Whether the header ends in `;base64`, which is taken off.
    private static func takeBase64(from header: inout ArraySlice<UInt8>) -> Bool {
        guard let semicolon = header.lastIndex(of: ASCII.semicolon) else { return false }
        let last = header[(semicolon + 1)...].trimmingOWS().map(ASCII.lowercased)
        guard last == Array("base64".utf8) else { return false }
        header = header[..<semicolon]
        return true
    }

    private static func isMediaType(_ text: String) -> Bool {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy(ASCII.isToken) }
    }

    /// What percent signs stand for; one without two digits stands for itself.
    private static func unescaped(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var found: [UInt8] = []
        found.reserveCapacity(bytes.count)
        var at = bytes.startIndex
        while at < bytes.endIndex {
            if bytes[at] == UInt8(ascii: "%"), at + 2 < bytes.endIndex,
                let high = ASCII.hexDigit(bytes[at + 1]), let low = ASCII.hexDigit(bytes[at + 2])
            {
                found.append(high << 4 | low)
                at += 3
            } else {
                found.append(bytes[at])
                at += 1
            }
        }
        return found
    }

    /// Base64 with white space anywhere and without padding, as browsers forgive it.
    private static func base64(_ bytes: [UInt8]) -> Data? {
        var kept = bytes.filter { !ASCII.isOWS($0) && ![0x0A, 0x0C, 0x0D].contains($0) }
        if kept.count % 4 == 0 {
            for _ in 0..<2 where kept.last == ASCII.equals { kept.removeLast() }
        }
        guard kept.count % 4 != 1, !kept.contains(ASCII.equals) else { return nil }
        let padding = [UInt8](repeating: ASCII.equals, count: (4 - kept.count % 4) % 4)
        return Data(base64Encoded: Data(kept + padding))
    }
}
