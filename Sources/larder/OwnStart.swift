import CStart
import Glibc

/// What this process was started with, byte by byte: neither arguments nor variables need be UTF-8.
enum OwnStart {
    /// The arguments, the program's own name first.
    static var arguments: [[UInt8]] {
        var texts: [[UInt8]] = []
        for index in 0..<larder_argument_count() {
            guard let text = unsafe larder_argument(index) else { break }
            texts.append(unsafe Self.bytes(text))
        }
        return texts.isEmpty ? Self.runtimesArguments : texts
    }

    /// The arguments that are read as words: without the program's name, with a replacement in the
    /// place of what is not UTF-8.
    static var words: [String] {
        Self.arguments.dropFirst().map { String(decoding: $0, as: UTF8.self) }
    }

    /// As Swift's runtime knows them, which is by /proc alone.
    private static var runtimesArguments: [[UInt8]] {
        var texts: [[UInt8]] = []
        for index in 0..<Int(CommandLine.argc) {
            guard let text = unsafe CommandLine.unsafeArgv[index] else { break }
            texts.append(unsafe Self.bytes(text))
        }
        return texts
    }

    /// The entries of the environment, in their order: `NAME=VALUE`, as a rule.
    static var environment: [[UInt8]] {
        var texts: [[UInt8]] = []
        var next = unsafe environ
        while let entry = unsafe next.pointee {
            texts.append(unsafe Self.bytes(entry))
            unsafe next += 1
        }
        return texts
    }

    private static func bytes(_ text: UnsafePointer<CChar>) -> [UInt8] {
        unsafe Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }
}
