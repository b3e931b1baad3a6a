import Glibc

/// The directories with presets: files of cache rules for one kind of origin each.
struct PresetLibrary {
    /// The preferred one first.
    let directories: [String]

    private static let ending = ".yaml"

    /// The text of a preset, and its path; nil where no directory has it.
    func text(
        of name: PresetName
    ) throws(ConfigurationError) -> (path: String, text: String)? {
        for directory in self.directories {
            let path = "\(directory)/\(name.text)\(Self.ending)"
            if let text = try Configuration.contents(path) { return (path, text) }
        }
        return nil
    }

    /// All presets that there are, by name.
    var names: [String] {
        var names = Set<String>()
        for directory in self.directories {
            for file in Self.files(in: directory) where file.hasSuffix(Self.ending) {
                names.insert(String(file.dropLast(Self.ending.count)))
            }
        }
        return names.sorted()
    }

    private static func files(in directory: String) -> [String] {
        guard let stream = unsafe opendir(directory) else { return [] }
        defer { unsafe _ = closedir(stream) }
        var files: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { field in
                unsafe field.withMemoryRebound(to: CChar.self, capacity: 256) {
                    unsafe String(cString: $0)
                }
            }
            files.append(name)
        }
        return files
    }
}

extension ProcessEnvironment {
    /// Where presets may lie: beside the configuration, in the places of the user and the system, and
    /// where this program was installed or built.
    func presetDirectories(configuration: String?) -> [String] {
        var directories: [String] = []
        func add(_ directory: String?) {
            guard let directory, !directories.contains(directory) else { return }
            directories.append(directory)
        }
        add(configuration.flatMap(Self.parent).map { "\($0)/presets" })
        if self["LARDER_SYSTEM"] != "1" { add(self.configHome.map { "\($0)/larder/presets" }) }
        add("/etc/larder/presets")
        if let executable = self.executable, let bin = Self.parent(executable) {
            // A build of the source tree: TREE/.build/…/larder.
            if let build = executable.ranges(of: "/.build/").first {
                add("\(executable[..<build.lowerBound])/conf/presets")
            }
            add(Self.parent(bin).map { "\($0)/share/larder/presets" })
        }
        add("/usr/local/share/larder/presets")
        add("/usr/share/larder/presets")
        return directories
    }

    private static func parent(_ path: String) -> String? {
        guard let slash = path.lastIndex(of: "/") else { return nil }
        return slash == path.startIndex ? nil : String(path[..<slash])
    }
}
