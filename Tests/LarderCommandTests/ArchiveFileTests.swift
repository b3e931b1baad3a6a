import Foundation
import Glibc
import Testing

@testable import larder

@Suite("The file of an archive")
struct ArchiveFileTests {
    private func withDirectory(_ body: (String) throws -> Void) throws {
        let directory = NSTemporaryDirectory() + "/larder-archive-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try body(directory)
    }

    private func write(to path: String, replaces: Bool) throws {
        let file = try ArchiveFile(name: path, replaces: replaces)
        try file.write(Array("archive".utf8))
        try file.finish()
    }

    @Test("takes the place of a file when it is told to, and only then")
    func file() throws {
        try self.withDirectory { directory in
            let path = directory + "/a.warc"
            try self.write(to: path, replaces: false)
            #expect(throws: CommandFailure.self) { try self.write(to: path, replaces: false) }
            try Data("other".utf8).write(to: URL(filePath: path))
            try self.write(to: path, replaces: true)
            #expect(try String(contentsOfFile: path, encoding: .utf8) == "archive")
        }
    }

    @Test(
        "takes the place of nothing that is no file",
        arguments: [
            ("pipe", "no regular file"), ("link", "a symbolic link"),
            ("dangling", "a symbolic link"), ("directory", "no regular file"),
        ])
    func others(_ kind: String, _ told: String) throws {
        try self.withDirectory { directory in
            let path = directory + "/" + kind
            let target = directory + "/target"
            switch kind {
            case "pipe": #expect(unsafe mkfifo(path, 0o600) == 0)
            case "directory": #expect(unsafe mkdir(path, 0o700) == 0)
            default:
                if kind == "link" { try Data("other".utf8).write(to: URL(filePath: target)) }
                #expect(unsafe symlink(target, path) == 0)
            }
            var before = stat()
            var after = stat()
            #expect(unsafe lstat(path, &before) == 0)
            let error = #expect(throws: CommandFailure.self) {
                try self.write(to: path, replaces: true)
            }
            #expect(error?.causes.first == "\(path) is \(told)")
            #expect(unsafe lstat(path, &after) == 0)
            #expect(before.st_ino == after.st_ino)
        }
    }
}
