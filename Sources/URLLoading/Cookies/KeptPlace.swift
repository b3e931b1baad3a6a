import Foundation
import LarderEngine
import LarderHTTP
import LarderState

/// Where this program keeps what outlives it: a directory of its own below `$XDG_DATA_HOME`, or
/// `~/.local/share` where that is not set to an absolute path.
///
/// The environment is read each time: a program may set it before it first asks.
enum KeptPlace {
    /// What is kept, by which it is told who is one program.
    enum Kind {
        /// Where Foundation keeps them.
        case cookies
        /// Where no other program has its own.
        case credentials
    }

    /// Directories in which programs of all kinds lie, so that their name says nothing of one.
    private static let commonDirectories: Set<String> = ["bin", "sbin", "libexec", "lib", ""]

    /// The name of this program, for cookies.
    static var application: String { self.application(keeping: .cookies) }

    /// The name of this program: the identifier of its bundle, or else one for where it lies.
    private static func application(keeping kind: Kind) -> String {
        if let identifier = Bundle.main.bundleIdentifier { return Self.component(identifier) }
        return Self.component(
            Self.name(
                in: Bundle.main.bundlePath, process: ProcessInfo.processInfo.processName,
                keeping: kind))
    }

    /// The name of a program without a bundle identifier: that of the directory that it lies in, as
    /// Foundation has it, or that of its process where many lie there.
    ///
    /// - Parameter path: of that directory. Where programs are built it is a part of the name for
    ///   credentials, as those of two packages may be called alike.
    static func name(in path: String, process: String, keeping kind: Kind) -> String {
        let directory = String((path.split(separator: "/").last ?? "").prefix { $0 != "." })
        if self.commonDirectories.contains(directory) { return process }
        switch kind {
        case .cookies: return directory
        case .credentials:
            return self.isForBuilding(directory) ? "\(process)-\(self.hash(path))" : directory
        }
    }

    /// Whether all programs that somebody builds lie there: SwiftPM's `debug` and `release`, of its newer
    /// build system `Debug-linux` and the like.
    private static func isForBuilding(_ directory: String) -> Bool {
        let first = directory.lowercased().prefix { $0 != "-" }
        return first == "debug" || first == "release"
    }

    /// The program's directory.
    private static func directory(keeping kind: Kind) -> String {
        let data = ProcessInfo.processInfo.environment["XDG_DATA_HOME"] ?? ""
        let base = data.hasPrefix("/") ? data : "\(HomeDirectory.path ?? "")/.local/share"
        return "\(base)/\(self.application(keeping: kind))"
    }

    /// A state of that name in the program's directory, and its key beside it.
    static func state(named name: String, keeping kind: Kind = .cookies) -> StateConfiguration {
        let path = "\(self.directory(keeping: kind))/\(self.component(name))"
        return StateConfiguration(
            directory: path, key: .file("\(path).key"), capacity: .mebibytes(64))
    }

    /// The name of the state of a group's cookies; none of the library's own, nor of a key.
    ///
    /// It once was another one, which stays where there is such a state. As each ends alike, none is like
    /// the key of another.
    static func name(ofGroup identifier: String) -> String {
        let former = ".cookies.\(identifier)"
        if identifier != "shared", !identifier.hasSuffix(".key"), self.isThere(former) {
            return former
        }
        return ".group-cookies.\(identifier).state"
    }

    private static func isThere(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: self.state(named: name).directory + ".key")
    }

    /// What this process has open of that state.
    static func shared(named name: String, keeping kind: Kind = .cookies) -> SharedState {
        let configuration = self.state(named: name, keeping: kind)
        return LibraryState.shared(
            configuration, report: DiskNotices.state(configuration.directory))
    }

    /// The text as one name in a path, whatever it holds: other characters are percent-encoded, and
    /// what is too long for a name is cut, with a hash of all of it.
    static func component(_ text: String) -> String {
        let allowed = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_. ~+@")
        let encoded = text.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        if encoded == "." || encoded == ".." || encoded.isEmpty { return "_" }
        guard encoded.utf8.count > 160 else { return encoded }
        return "\(encoded.prefix(100))-\(self.hash(text))"
    }

    /// FNV-1a: the same in every process.
    private static func hash(_ text: String) -> String {
        let hash = text.utf8.reduce(UInt64(0xcbf2_9ce4_8422_2325)) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01b3
        }
        return String(hash, radix: 16)
    }
}
