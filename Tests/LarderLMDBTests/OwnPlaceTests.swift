import Foundation
import Testing

@testable import LarderLMDB

@Suite("Places that nobody else can have laid something in")
struct OwnPlaceTests {
    struct Case: Sendable {
        var mode: mode_t
        var owner: uid_t = 1000
        var group: gid_t = 1000
        /// Who asks; and its group.
        var user: uid_t = 1000
        var own: gid_t = 1000
        var isSafe: Bool
    }

    @Test(
        "are told by the mode of the directory",
        arguments: [
            Case(mode: 0o700, isSafe: true),
            Case(mode: 0o755, isSafe: true),
            Case(mode: 0o777, isSafe: false),
            Case(mode: 0o757, isSafe: false),
            // Only who owns a file takes it away there (unlink(2)).
            Case(mode: 0o1777, owner: 0, group: 0, isSafe: true),
            // A group of one's own, and one that others are in.
            Case(mode: 0o775, isSafe: true),
            Case(mode: 0o775, group: 100, isSafe: false),
            Case(mode: 0o775, group: 100, own: 100, isSafe: false),
            // What root has given to a service.
            Case(mode: 0o770, owner: 0, group: 990, user: 995, own: 990, isSafe: true),
            Case(mode: 0o770, owner: 0, group: 991, user: 995, own: 990, isSafe: false),
            Case(mode: 0o770, owner: 0, group: 50, user: 0, own: 0, isSafe: false),
        ])
    func mode(_ c: Case) {
        var status = stat()
        status.st_mode = S_IFDIR | c.mode
        status.st_uid = c.owner
        status.st_gid = c.group
        #expect(OwnPlace.isSafe(status, user: c.user, group: c.own) == c.isSafe)
    }

    /// Lays something of a kind at a path; with the file that it leads to.
    private static func lay(_ kind: String, at path: String, victim: String) throws {
        try Data("precious".utf8).write(to: URL(fileURLWithPath: victim))
        switch kind {
        case "symbolic link": try #require(unsafe symlink(victim, path) == 0)
        case "hard link": try #require(unsafe link(victim, path) == 0)
        case "FIFO": try #require(unsafe mkfifo(path, 0o600) == 0)
        default: try #require(unsafe mkdir(path, 0o700) == 0)
        }
    }

    @Test(
        "have no files but our own, which are not opened otherwise",
        arguments: [
            ("symbolic link", "f is a symbolic link"), ("hard link", "f has 2 names"),
            ("FIFO", "f is no file"), ("directory", "f is no file"),
        ])
    func foreign(_ kind: String, _ words: String) throws {
        let directory = try TemporaryDirectory()
        let (path, victim) = (directory.path + "/f", directory.path + "/victim")
        try Self.lay(kind, at: path, victim: victim)
        let open = #expect(throws: LMDBError.self) {
            close(try OwnPlace.open(path, O_RDWR | O_CREAT))
        }
        #expect(open?.code == .foreignFile && open?.description == words)
        let look = #expect(throws: LMDBError.self) { try OwnPlace.check(path) }
        #expect(look == open)
    }

    @Test("are made, opened again, and done without where they are not there")
    func own() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/f"
        try OwnPlace.check(path)
        let error = #expect(throws: LMDBError.self) { close(try OwnPlace.open(path, O_RDONLY)) }
        #expect(error?.code == .noSuchFile)
        for _ in 0..<2 { close(try OwnPlace.open(path, O_RDWR | O_CREAT)) }
        var status = stat()
        #expect(unsafe stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test(
        "are refused where another user owns them",
        .enabled(if: geteuid() == 0, "only root can give a file away"))
    func given() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/f"
        close(try OwnPlace.open(path, O_RDWR | O_CREAT))
        try #require(unsafe chown(path, 12_345, 12_345) == 0)
        let file = #expect(throws: LMDBError.self) { try OwnPlace.check(path) }
        #expect(file?.description == "f belongs to user 12345")
        // Of a service that is looked at by root.
        try #require(unsafe chown(directory.path, 12_345, 12_345) == 0)
        try OwnPlace.check(path)
        let place = #expect(throws: LMDBError.self) {
            try OwnPlace.checkDirectory(directory.path)
        }
        #expect(place?.code == .unsafeDirectory)
    }

    @Test(
        "get from root what their owner can use, and nothing that was there before",
        .enabled(if: geteuid() == 0, "only root can give a file away"))
    func made() throws {
        let directory = try TemporaryDirectory()
        func owner(_ name: String) -> uid_t? {
            var status = stat()
            let isThere = unsafe lstat("\(directory.path)/\(name)", &status) == 0
            return isThere ? status.st_uid : nil
        }
        func make(_ name: String) throws(LMDBError) {
            try OwnPlace.make("\(directory.path)/\(name)", forOwnerOf: "\(directory.path)/f")
        }
        // There is none, then one of root's own.
        try make("a")
        close(try OwnPlace.open(directory.path + "/f", O_RDWR | O_CREAT))
        try make("a")
        #expect(owner("a") == nil)
        // In a directory of root's it is somebody else's.
        try #require(unsafe chown(directory.path + "/f", 12_345, 12_345) == 0)
        let error = #expect(throws: LMDBError.self) { try make("a") }
        #expect(error?.code == .foreignFile)
        #expect(owner("a") == nil)
        try #require(unsafe chown(directory.path, 12_345, 12_345) == 0)
        try make("a")
        #expect(owner("a") == 12_345)
        close(try OwnPlace.open(directory.path + "/b", O_RDWR | O_CREAT))
        try make("b")
        #expect(owner("b") == 0)
        // What leads there is nobody's file.
        let (data, other) = (directory.path + "/f", directory.path + "/g")
        try #require(unsafe rename(data, other) == 0 && symlink(other, data) == 0)
        try #require(unsafe lchown(data, 12_345, 12_345) == 0)
        try make("c")
        #expect(owner("c") == nil)
    }

    @Test(
        "have a table of readers for whom the file is of, where root only reads it",
        .enabled(if: geteuid() == 0, "only root can give a file away"))
    func readerTable() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/test.mdb"
        let environment = try Environment.open(
            path: path, options: EnvironmentOptions(mapSize: 1 << 20))
        _ = try environment.openDatabases(["a"], creating: true)
        environment.close()
        try #require(unsafe unlink(path + "-lock") == 0)
        for place in [directory.path, path] {
            try #require(unsafe chown(place, 12_345, 12_346) == 0)
        }
        let reader = try Environment.open(
            path: path, options: EnvironmentOptions(isReadOnly: true))
        try reader.read { (_) throws(LMDBError) in }
        reader.close()
        var status = stat()
        try #require(unsafe lstat(path + "-lock", &status) == 0)
        #expect(status.st_uid == 12_345 && status.st_gid == 12_346)
    }

    @Test(
        "LMDB opens nothing that leads elsewhere", arguments: ["test.mdb", "test.mdb-lock"])
    func environment(_ name: String) throws {
        let directory = try TemporaryDirectory()
        let victim = directory.path + "/victim"
        try Self.lay("symbolic link", at: directory.path + "/" + name, victim: victim)
        let error = #expect(throws: LMDBError.self) {
            try Environment.open(
                path: directory.path + "/test.mdb", options: EnvironmentOptions(mapSize: 1 << 20))
        }
        #expect(error?.code == .foreignFile)
        #expect(try String(contentsOfFile: victim, encoding: .utf8) == "precious")
    }
}
