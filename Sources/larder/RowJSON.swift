/// A row of a listing as one JSON object.
///
/// Written here and not by `JSONEncoder`, which takes ten times as long: a listing may have millions
/// of rows. Names are in the order of their letters, as everywhere in Larder.
enum RowJSON {
    static func line(_ row: CacheRow) -> [UInt8] {
        var out = Array("{\"ageMilliseconds\":\(row.ageMilliseconds),\"bytes\":\(row.bytes)".utf8)
        out += ",\"freshForMilliseconds\":\(row.freshForMilliseconds),\"hits\":\(row.hits)".utf8
        out += ",\"lastUsedMicroseconds\":\(row.lastUsedMicroseconds),\"method\":".utf8
        Self.append(row.method, to: &out)
        if let partial = row.partial {
            out += ",\"partial\":{".utf8
            if let length = partial.completeLength {
                out += "\"completeLength\":\(length),".utf8
            }
            let ranges = partial.ranges.map { "{\"first\":\($0.first),\"last\":\($0.last)}" }
            out += "\"ranges\":[\(ranges.joined(separator: ","))]".utf8
            out += ",\"storedBytes\":\(partial.storedBytes)}".utf8
        }
        out += ",\"partition\":".utf8
        Self.append(row.partition, to: &out)
        out += ",\"status\":\(row.status),\"tier\":\"\(row.tier.rawValue)\",\"url\":".utf8
        Self.append(row.url, to: &out)
        if !row.variant.isEmpty { Self.append(row.variant, to: &out) }
        out.append(UInt8(ascii: "}"))
        return out
    }

    /// As `larder cache show --json` has it.
    private static func append(_ variant: [CacheField], to out: inout [UInt8]) {
        var separator = ",\"variant\":["
        for field in variant {
            out += separator.utf8
            out += "{\"name\":".utf8
            Self.append(field.name, to: &out)
            out += ",\"value\":".utf8
            Self.append(field.value, to: &out)
            out.append(UInt8(ascii: "}"))
            separator = ","
        }
        out.append(UInt8(ascii: "]"))
    }

    /// A string (RFC 8259 §7): quotation mark, backslash and control characters are escaped.
    private static func append(_ text: String, to out: inout [UInt8]) {
        let digits = Array("0123456789abcdef".utf8)
        out.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                out.append(UInt8(ascii: "\\"))
                out.append(byte)
            case 0..<0x20, 0x7F:
                out += "\\u00".utf8
                out.append(digits[Int(byte >> 4)])
                out.append(digits[Int(byte & 15)])
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
    }
}
