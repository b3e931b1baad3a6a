import CCurl
import Glibc
import LarderHTTP

/// The field lines of a request as the linked list that CURLOPT_HTTPHEADER reads: entries, most of
/// one line.
///
/// libcurl does not copy the list, so it must live as long as the transfer: it belongs to the easy
/// handle and is filled anew for each request. Text and nodes are two blocks that are kept, where
/// curl_slist_append(3) would allocate twice a field. The text may hold secrets, so what was used
/// of it is overwritten when it is no longer needed.
@safe final class RequestFieldList {
    private var text: UnsafeMutableRawBufferPointer
    private var nodes: UnsafeMutableBufferPointer<curl_slist>
    private var used = 0
    /// Where each entry begins in `text`, which may still move.
    private var starts: [Int] = []

    init() {
        unsafe self.text = .allocate(byteCount: 2048, alignment: 1)
        unsafe self.nodes = .allocate(capacity: 32)
    }

    deinit {
        self.wipe()
        unsafe self.text.deallocate()
        unsafe self.nodes.deallocate()
    }

    func removeAll() {
        self.wipe()
        self.used = 0
        var starts = exchange(&self.starts, with: [])
        starts.removeAll(keepingCapacity: true)
        self.starts = starts
    }

    /// Adds a line; one whose name could end early, or whose value has bytes that no field value may have
    /// (RFC 9110 §5.5), is refused with false.
    ///
    /// CURLOPT_HTTPHEADER(3): "If you add a header with no content as in 'Accept:' (no data on the
    /// right side of the colon), the internally used header will get disabled. … To add a header
    /// with no content (nothing after the colon), use the form 'name;' (note the trailing
    /// semicolon)."
    ///
    /// - Parameter isJoined: it goes into the entry of the line before (`CurlLibrary.takesJoinedLines`).
    ///   libcurl sends what is in an entry as it stands and knows it by its first line alone: of those
    ///   behind it can neither make anything nor mistake it, and it takes some 750 instructions less
    ///   for each.
    func append(
        _ name: Span<UInt8>, _ value: Span<UInt8>, isJoined: Bool = false
    ) -> Bool {
        self.reserve(name.count + value.count + 4)
        if isJoined { self.reopenEntry() } else { self.beginEntry() }
        self.put(name)
        if value.isEmpty {
            self.put(isJoined ? UInt8(ascii: ":") : UInt8(ascii: ";"))
        } else {
            self.put(UInt8(ascii: ":"))
            self.put(UInt8(ascii: " "))
            self.put(value)
        }
        self.put(0)
        return Self.isName(name) && value.areFieldValue(value.indices)
    }

    /// Whether a name ends where libcurl takes it to end.
    private static func isName(_ bytes: Span<UInt8>) -> Bool {
        for i in bytes.indices {
            let byte = bytes[i]
            if byte <= 0x20 || byte == 0x3A || byte == 0x3B { return false }
        }
        return !bytes.isEmpty
    }

    /// Adds a line of a section, as above.
    func append(_ line: Fields.Line, of section: Fields, isJoined: Bool = false) -> Bool {
        let bytes = section.bytes.span
        return self.append(
            bytes.extracting(line.namePlace), bytes.extracting(line.valuePlace),
            isJoined: isJoined)
    }

    /// Has libcurl leave out a field that it would add by itself.
    func suppress(_ name: StaticString) {
        self.reserve(name.utf8CodeUnitCount + 2)
        self.beginEntry()
        self.put(name)
        self.put(UInt8(ascii: ":"))
        self.put(0)
    }

    /// Links the entries; valid until the next change.
    func link() -> UnsafeMutablePointer<curl_slist>? {
        guard let base = unsafe self.text.baseAddress, !self.starts.isEmpty else { return nil }
        if unsafe self.nodes.count < self.starts.count {
            unsafe self.nodes.deallocate()
            unsafe self.nodes = .allocate(capacity: self.starts.count * 2)
        }
        guard let first = unsafe self.nodes.baseAddress else { return nil }
        for (i, start) in self.starts.enumerated() {
            let next = unsafe i + 1 < self.starts.count ? first + i + 1 : nil
            let data = unsafe (base + start).assumingMemoryBound(to: CChar.self)
            unsafe (first + i).initialize(to: curl_slist(data: data, next: next))
        }
        return unsafe first
    }

    private func wipe() {
        if let address = unsafe self.text.baseAddress {
            unsafe explicit_bzero(address, self.used)
        }
    }

    private func beginEntry() {
        var starts = exchange(&self.starts, with: [])
        starts.append(self.used)
        self.starts = starts
    }

    /// Ends the last line of the last entry, so that another follows in the place of its NUL.
    private func reopenEntry() {
        guard !self.starts.isEmpty else { return self.beginEntry() }
        self.used -= 1
        self.put(UInt8(ascii: "\r"))
        self.put(UInt8(ascii: "\n"))
    }

    private func put(_ byte: UInt8) {
        unsafe self.text[self.used] = byte
        self.used += 1
    }

    /// Bytes for which there is room (`reserve`), in one piece.
    private func put(_ bytes: Span<UInt8>) {
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: self.text[self.used...])
        unsafe bytes.withUnsafeBytes { unsafe room.copyMemory(from: $0) }
        self.used += bytes.count
    }

    private func put(_ text: StaticString) {
        for i in 0..<text.utf8CodeUnitCount { self.put(unsafe text.utf8Start[i]) }
    }

    private func reserve(_ count: Int) {
        guard unsafe self.text.count - self.used < count else { return }
        let larger = unsafe UnsafeMutableRawBufferPointer.allocate(
            byteCount: (self.text.count + count) * 2, alignment: 1)
        unsafe larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: self.text[..<self.used]))
        self.wipe()
        unsafe self.text.deallocate()
        unsafe self.text = larger
    }
}
