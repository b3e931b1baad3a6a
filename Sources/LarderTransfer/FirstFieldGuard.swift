import LarderHTTP

/// Says which line of a head libcurl must not get to take up: a value.
///
/// Before 8.1.1 a handle that received a response before appends a line that is folded before any field
/// to the last field of that response, which has been freed (`CurlLibrary.forgetsFields`). With
/// CURLOPT_HEADER(3) it shows each line to the write callback before it does so, and lets it refuse. It
/// looks at the option for each line, so that it can be taken back behind the first field.
struct FirstFieldGuard {
    private enum Place {
        case statusLine, firstField
        /// libcurl has a field of this response, to which it may append.
        case beyond
    }

    private var place = Place.statusLine
    /// libcurl hands on long lines in parts (CURL_MAX_WRITE_SIZE).
    private var isInsideLine = false

    /// No line needs to be shown any more: the first field's has ended.
    var isOver: Bool { self.place == .beyond && !self.isInsideLine }

    /// Takes the next part of a head; false: libcurl must not go on with it.
    mutating func admits(_ part: UnsafeRawBufferPointer) -> Bool {
        guard !self.isOver, let first = unsafe part.first, let last = unsafe part.last else {
            return true
        }
        let isBeginning = !self.isInsideLine
        self.isInsideLine = last != ASCII.lf
        guard isBeginning, self.place != .beyond else { return true }
        switch (self.place, first) {
        case (.statusLine, _): self.place = .firstField
        case (_, ASCII.space), (_, ASCII.tab): return false
        // A head without fields, as interim ones often are: another follows.
        case (_, ASCII.cr), (_, ASCII.lf): self.place = .statusLine
        default: self.place = .beyond
        }
        return true
    }

    /// Another request goes out for the same transfer.
    mutating func requestBegins() {
        guard self.place != .beyond else { return }
        self = FirstFieldGuard()
    }
}
