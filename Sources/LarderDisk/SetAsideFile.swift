/// A cache file that could not be used and was renamed, so that a new one could be made.
package struct SetAsideFile: Sendable, Equatable, Codable {
    package var name: String
    package var bytes: UInt64

    package init(name: String, bytes: UInt64) {
        self.name = name
        self.bytes = bytes
    }

    /// The files in a cache's directory, the oldest first; none where it cannot be read.
    package static func all(in directory: String) -> [SetAsideFile] {
        DiskFiles(directory: directory).asides.map { SetAsideFile(name: $0.name, bytes: $0.bytes) }
    }
}
