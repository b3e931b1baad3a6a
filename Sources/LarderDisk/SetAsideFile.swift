import Glibc

/// A cache file that could not be used and was renamed, so that a new one could be made.
package struct SetAsideFile: Sendable, Equatable, Codable {
    package var name: String
    package var bytes: UInt64

    package init(name: String, bytes: UInt64) {
        self.name = name
        self.bytes = bytes
    }

    /// Those in a cache's directory, by name; none where it cannot be read.
    package static func all(in directory: String) -> [SetAsideFile] {
        guard let listing = unsafe opendir(directory) else { return [] }
        defer { _ = unsafe closedir(listing) }
        var files: [SetAsideFile] = []
        while let entry = unsafe readdir(listing) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            guard name.hasPrefix(DiskFiles.asideMark) else { continue }
            var status = stat()
            guard unsafe stat("\(directory)/\(name)", &status) == 0 else { continue }
            files.append(SetAsideFile(name: name, bytes: UInt64(clamping: status.st_size)))
        }
        return files.sorted { $0.name < $1.name }
    }
}
