import FoundationEssentials

/// Octets that may be a secret: they cross the control socket, and stand in no description.
///
/// In base64 on their way. The socket is the user's alone (0600, in a directory that is 0700), and
/// neither end logs what goes over it.
package struct ControlSecret: Sendable, Equatable {
    private let content: Data

    package init(_ bytes: [UInt8]) {
        self.content = Data(bytes)
    }

    package var revealed: [UInt8] { Array(self.content) }
    package var count: Int { self.content.count }
}

extension ControlSecret: Codable {
    package init(from decoder: any Decoder) throws {
        self.content = try decoder.singleValueContainer().decode(Data.self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.content)
    }
}

extension ControlSecret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
