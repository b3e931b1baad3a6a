import LarderArchive
import LarderHTTP

/// A HAR file from anywhere: its entries are the same however it is cut, and none is larger than is held.
enum HARPromises {
    private static let limit = 512

    private struct Reading: Equatable {
        var events: [HARSplitter.Event] = []
        var isWhole = false
    }

    static func check(_ input: [UInt8]) throws(Violation) {
        let whole = self.read([input[...]])
        for pieces in Pieces.some(input) {
            let cut = self.read(pieces)
            try hold(cut == whole, "cut in pieces: \(cut), whole: \(whole)")
        }
        for event in whole.events {
            switch event {
            case .tooLarge(let count):
                try hold(count > UInt64(self.limit), "\(count) bytes are too many")
            case .failed: try hold(event == whole.events.last, "goes on after it has failed")
            case .entry(let bytes):
                try hold(bytes.count <= self.limit, "an entry of \(bytes.count) bytes")
                try hold(bytes.first == 0x7B && bytes.last == 0x7D, "an entry that is no object")
                try self.checkEntry(bytes)
            }
        }
        try self.checkEntry(input)
        var text = UTF8Check()
        for piece in Pieces.some(input).last ?? [] { text.take(piece) }
        let isText = String(validating: input, as: UTF8.self) != nil
        try hold(text.isWhole == isText, "text: \(text.isWhole), by the library: \(isText)")
    }

    private static func checkEntry(_ bytes: [UInt8]) throws(Violation) {
        guard let entry = HAREntry(bytes) else { return }
        for section in [entry.fields, entry.requestFields, entry.larder] {
            try checkSection(section)
        }
    }

    private static func read(_ pieces: [ArraySlice<UInt8>]) -> Reading {
        var reading = Reading()
        var splitter = HARSplitter(limit: self.limit)
        for piece in pieces { reading.events += splitter.push(piece) }
        reading.isWhole = splitter.isWhole
        return reading
    }
}
