import LarderControl

/// Messages on the control socket: lines, and what is in them.
enum ControlPromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        for longest in [ControlCodec.longestLine, 16] {
            let whole = self.lines([input[...]], longest)
            for pieces in Pieces.some(input) {
                let cut = self.lines(pieces, longest)
                try hold(cut == whole, "cut: \(cut as Any), whole: \(whole as Any)")
            }
            if let whole {
                try hold(whole == input.textLines.dropLast().map { Array($0) }, "\(whole)")
            }
        }
        for line in input.textLines {
            try self.stable(ControlRequest.self, Array(line))
            try self.stable(ControlReply.self, Array(line))
        }
    }

    /// The complete lines; nil where one is too long.
    private static func lines(_ pieces: [ArraySlice<UInt8>], _ longest: Int) -> [[UInt8]]? {
        var splitter = LineSplitter(longest: longest)
        var lines: [[UInt8]] = []
        for piece in pieces {
            guard let found = try? splitter.push(piece) else { return nil }
            lines += found
        }
        return lines
    }

    private static func stable<Message: Codable & Equatable>(
        _ type: Message.Type, _ line: [UInt8]
    ) throws(Violation) {
        guard let message = try? ControlCodec.message(type, from: line) else { return }
        guard let written = try? ControlCodec.line(message) else {
            throw Violation(description: "\(message) cannot be written")
        }
        let body = Array(written.dropLast())
        try hold(!body.contains(0x0A) && written.last == 0x0A, "a line of two lines: \(body.text)")
        let again = try? ControlCodec.message(type, from: body)
        try hold(again == message, "written and read again: \(again as Any), first: \(message)")
    }
}
