import CCurl
import Glibc
import LarderHTTP

/// The field lines of a request as the linked list that CURLOPT_HTTPHEADER reads.
///
/// libcurl does not copy the list, so it must live as long as the transfer: it belongs to the easy
/// handle and is filled anew for each request. Text and nodes are two blocks that are kept, where
/// curl_slist_append(3) would allocate twice a field. The text may hold secrets, so what was used
/// of it is overwritten when it is no longer needed.
@safe final class RequestFieldList {
    private var text: UnsafeMutableBufferPointer<CChar>
    private var nodes: UnsafeMutableBufferPointer<curl_slist>
    private var used = 0
    /// Where each line begins in `text`, which may still move.
    private var starts: [Int] = []

    init() {
        unsafe self.text = .allocate(capacity: 2048)
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

    /// Adds a line; one whose bytes could end a line early is refused with false.
    ///
    /// CURLOPT_HTTPHEADER(3): "If you add a header with no content as in 'Accept:' (no data on the
    /// right side of the colon), the internally used header will get disabled. … To add a header
    /// with no content (nothing after the colon), use the form 'name;' (note the trailing
    /// semicolon)."
    ///
    /// - Parameter expectingContinue: adds `Expect: 100-continue` to the same entry, so that the
    ///   field goes out but libcurl does not know of it. It would otherwise answer a 417 by sending
    ///   the request again by itself and throwing the origin's explanation away, which no option
    ///   prevents. The waiting that goes with the field is done by `RequestContent`.
    func append(
        _ name: Span<UInt8>, _ value: Span<UInt8>, expectingContinue: Bool = false
    ) -> Bool {
        let expectation: StaticString = "\r\nExpect: 100-continue"
        self.reserve(name.count + value.count + expectation.utf8CodeUnitCount + 3)
        self.beginLine()
        var isSafe = !name.isEmpty
        for i in name.indices {
            let byte = name[i]
            if byte <= 0x20 || byte == 0x3A || byte == 0x3B { isSafe = false }
        }
        self.put(name)
        if value.isEmpty {
            self.put(UInt8(ascii: ";"))
        } else {
            self.put(UInt8(ascii: ":"))
            self.put(UInt8(ascii: " "))
            for i in value.indices {
                let byte = value[i]
                if byte == 0x0D || byte == 0x0A || byte == 0 { isSafe = false }
            }
            self.put(value)
        }
        if expectingContinue {
            self.put(expectation)
        }
        self.put(0)
        return isSafe
    }

    /// Adds a line of a section; one whose bytes could end a line early is refused with false.
    func append(_ line: Fields.Line, of section: Fields) -> Bool {
        let bytes = section.bytes.span
        let (name, value) = (Int(line.nameStart), Int(line.valueStart))
        return self.append(
            bytes.extracting(name..<name + Int(line.nameLength)),
            bytes.extracting(value..<value + Int(line.valueLength)))
    }

    /// Has libcurl leave out a field that it would add by itself.
    func suppress(_ name: StaticString) {
        self.reserve(name.utf8CodeUnitCount + 2)
        self.beginLine()
        self.put(name)
        self.put(UInt8(ascii: ":"))
        self.put(0)
    }

    /// Links the lines; valid until the next change.
    func link() -> UnsafeMutablePointer<curl_slist>? {
        guard let base = unsafe self.text.baseAddress, !self.starts.isEmpty else { return nil }
        if unsafe self.nodes.count < self.starts.count {
            unsafe self.nodes.deallocate()
            unsafe self.nodes = .allocate(capacity: self.starts.count * 2)
        }
        guard let first = unsafe self.nodes.baseAddress else { return nil }
        for (i, start) in self.starts.enumerated() {
            let next = unsafe i + 1 < self.starts.count ? first + i + 1 : nil
            unsafe (first + i).initialize(to: curl_slist(data: base + start, next: next))
        }
        return unsafe first
    }

    private func wipe() {
        if let address = unsafe self.text.baseAddress {
            unsafe explicit_bzero(address, self.used)
        }
    }

    private func beginLine() {
        var starts = exchange(&self.starts, with: [])
        starts.append(self.used)
        self.starts = starts
    }

    private func put(_ byte: UInt8) {
        unsafe self.text[self.used] = CChar(bitPattern: byte)
        self.used += 1
    }

    /// Bytes for which there is room (`reserve`), in one piece.
    private func put(_ bytes: Span<UInt8>) {
        let end = self.used + bytes.count
        let room = unsafe UnsafeMutableBufferPointer(rebasing: self.text[self.used..<end])
        unsafe bytes.withUnsafeBytes {
            unsafe UnsafeMutableRawBufferPointer(room).copyMemory(from: $0)
        }
        self.used = end
    }

    private func put(_ text: StaticString) {
        for i in 0..<text.utf8CodeUnitCount { self.put(unsafe text.utf8Start[i]) }
    }

    private func reserve(_ count: Int) {
        guard unsafe self.text.count - self.used < count else { return }
        let larger = unsafe UnsafeMutableBufferPointer<CChar>.allocate(
            capacity: (self.text.count + count) * 2)
        for i in 0..<self.used { unsafe larger[i] = self.text[i] }
        self.wipe()
        unsafe self.text.deallocate()
        unsafe self.text = larger
    }
}
