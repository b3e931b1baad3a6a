import Glibc
import LarderCookies
import LarderCredentials
import LarderHTTP
import Synchronization
import Testing

@testable import LarderState

/// A directory of the test's own, gone with it.
final class TemporaryDirectory: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/larder-state-XXXXXX".utf8CString)
        self.path = unsafe template.withUnsafeMutableBufferPointer { bytes in
            guard let start = bytes.baseAddress, unsafe mkdtemp(start) != nil else { return "" }
            return unsafe String(cString: start)
        }
    }

    deinit { Self.remove(self.path) }

    private static func remove(_ path: String) {
        for name in Self.names(path) {
            let inner = "\(path)/\(name)"
            if unsafe unlink(inner) != 0 { Self.remove(inner) }
        }
        _ = unsafe rmdir(path)
    }

    static func names(_ path: String) -> [String] {
        guard let listing = unsafe opendir(path) else { return [] }
        defer { _ = unsafe closedir(listing) }
        var names: [String] = []
        while let entry = unsafe readdir(listing) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    var state: String { "\(self.path)/work" }
    var key: String { "\(self.path)/work.key" }
    var data: String { "\(self.state)/state.mdb" }

    var configuration: StateConfiguration {
        StateConfiguration(directory: self.state, key: .file(self.key))
    }

    func open(
        _ events: Events = Events(), key: KeySource? = nil, capacity: ByteCount = .mebibytes(64)
    ) throws(StateError) -> StateFile {
        try StateFile.open(
            StateConfiguration(
                directory: self.state, key: key ?? .file(self.key), capacity: capacity),
            now: Timestamp(seconds: 1_700_000_000)
        ) { events.note($0) }
    }

    /// Opens the state and closes it again.
    func openOnce(_ events: Events = Events()) async throws {
        let state = try self.open(events)
        await state.close()
    }

    /// The error of an opening; nil where it succeeds.
    func openingError(key: KeySource? = nil) async -> StateError? {
        do throws(StateError) {
            let state = try self.open(key: key)
            await state.close()
            return nil
        } catch {
            return error
        }
    }
}

/// What a state file reported.
final class Events: Sendable {
    private let noted = Mutex<[StateEvent]>([])

    func note(_ event: StateEvent) { self.noted.withLock { $0.append(event) } }

    var all: [StateEvent] { self.noted.withLock { $0 } }
}

func readFile(_ path: String) throws -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    try #require(descriptor >= 0, "\(path): \(errno)")
    defer { _ = close(descriptor) }
    var status = stat()
    try #require(unsafe fstat(descriptor, &status) == 0)
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = bytes.count
    try #require(unsafe read(descriptor, &bytes, count) == count)
    return bytes
}

func writeFile(_ path: String, _ bytes: [UInt8], mode: mode_t = 0o600) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
    try #require(descriptor >= 0, "\(path): \(errno)")
    defer { _ = close(descriptor) }
    try #require(fchmod(descriptor, mode) == 0)
    try #require(unsafe write(descriptor, bytes, bytes.count) == bytes.count)
}

func mode(_ path: String) -> mode_t? {
    var status = stat()
    return unsafe stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
}

// MARK: What is kept

func cookie(
    _ name: String, _ value: String = "v", domain: String = "a.example", path: String = "/",
    expires: Bool = true
) -> Cookie {
    Cookie(
        name: Array(name.utf8), value: Array(value.utf8), domain: domain, isHostOnly: true,
        path: path, isSecure: true, isHTTPOnly: true, sameSite: .strict,
        creation: Timestamp(seconds: 1_600_000_000), lastAccess: Timestamp(seconds: 1_600_000_007),
        expiry: expires ? Timestamp(seconds: 1_900_000_000) : nil)
}

func space(_ host: String = "a.example", realm: String? = "r") -> ProtectionSpace {
    ProtectionSpace(
        party: .server(.https), host: host, port: 443, realm: realm, method: .digest)
}

func credential(_ user: String, _ password: String) -> Credential {
    Credential(user: user, password: Secret(password), persistence: .permanent)
}

func token(_ name: String, _ token: String) -> NamedCredential {
    NamedCredential(name: name, kind: .bearer(Secret(token)), persistence: .permanent)
}

/// One record of each kind and form.
let sampleRecords: [StateRecord] = [
    .principal("user:alice"), .principal(""),
    .cookie(cookie("n", "some value", path: "/p")), .cookie(cookie("", "nameless", expires: false)),
    .credential(credential("ü:ser", "geheim"), space()),
    .credential(
        credential("u", ""),
        ProtectionSpace(
            party: .proxy(.socks), host: "[::1]", port: 1080, realm: nil, method: .default)),
    .defaultUser("u", space(realm: nil)),
    .named(token("ci", "abc.def")),
    .named(
        NamedCredential(
            name: "n", kind: .password(user: "u", password: Secret("p")), persistence: .permanent)),
    .named(
        NamedCredential(
            name: "k", kind: .field(name: "X-Key", value: Secret("0123")), persistence: .permanent)),
    .transfer(transfer(7)),
    .transfer(
        KeptTransfer(
            id: .max, uri: "https://example.com:8443/a?b", fields: Fields(),
            begun: Timestamp(seconds: 1),
            requester: Requester(address: "unix:1000", uid: 1000, user: "alice"))),
]

func transfer(_ id: UInt64) -> KeptTransfer {
    var fields = Fields()
    fields.append("Accept", "*/*")
    fields.append("X-Token", [0xE9, 0x20, 0x31])
    return KeptTransfer(
        id: id, uri: "http://example.com/\(id)", fields: fields, begun: Timestamp(seconds: 12),
        requester: Requester(address: "192.0.2.1"))
}

extension StateRecord {
    var written: [UInt8] {
        var writer = RecordWriter()
        self.write(to: &writer)
        return writer.withBytes { unsafe $0.withUnsafeBufferPointer { unsafe Array($0) } }
    }
}

extension StateRecord.Kind {
    /// Reads bytes as a record of this kind.
    func read(_ bytes: [UInt8]) throws(RecordFault) -> StateRecord {
        try StateRecord(self, bytes.span)
    }
}
