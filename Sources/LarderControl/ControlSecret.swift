import FoundationEssentials
import Glibc
import Synchronization

/// Octets that may be a secret: they cross the control socket, and stand in no description.
///
/// In base64 on their way. The socket is the user's alone (0600, in a directory that is 0700), and
/// neither end logs what goes over it. They are overwritten when the last copy has gone.
package struct ControlSecret: Sendable {
    private final class Content: Sendable {
        let octets: Mutex<[UInt8]>

        init(_ octets: [UInt8]) {
            self.octets = Mutex(octets)
        }

        deinit { self.octets.withLock { $0.wipe() } }
    }

    private let content: Content

    package init(_ bytes: [UInt8]) {
        // Never shared with the caller's array, which it would leave as it is.
        self.content = Content(bytes.map(\.self))
    }

    package var revealed: [UInt8] { self.content.octets.withLock { $0 } }
    package var count: Int { self.content.octets.withLock { $0.count } }
}

extension ControlSecret: Equatable {
    package static func == (a: ControlSecret, b: ControlSecret) -> Bool {
        a.revealed == b.revealed
    }
}

extension ControlSecret: Codable {
    package init(from decoder: any Decoder) throws {
        var data = try decoder.singleValueContainer().decode(Data.self)
        defer { data.resetBytes(in: data.startIndex..<data.endIndex) }
        self.init(Array(data))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        var data = Data(self.revealed)
        defer { data.resetBytes(in: data.startIndex..<data.endIndex) }
        try container.encode(data)
    }
}

extension ControlSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension [UInt8] {
    /// Overwrites what is no longer needed.
    package mutating func wipe() {
        unsafe self.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return }
            // Unlike a store that nobody reads, it is not left out by a compiler.
            unsafe explicit_bzero(start, bytes.count)
        }
    }
}
