import Glibc
import LarderHTTP
import Testing

@testable import LarderState

@Suite("What somebody has laid into the directory of a state")
struct PlantedFileTests {
    @Test(
        "is neither written to nor read",
        arguments: ["state.lock", "state.mdb", "state.mdb-lock"])
    func planted(_ name: String) async throws {
        let place = TemporaryDirectory()
        try await place.openOnce()
        let (victim, path) = ("\(place.path)/victim", "\(place.state)/\(name)")
        try writeFile(victim, Array("precious".utf8))
        _ = unsafe unlink(path)
        try #require(unsafe symlink(victim, path) == 0)
        let error = await place.openingError()
        #expect(error?.code == .untrusted)
        #expect(error?.cause == "\(name) is a symbolic link")
        #expect(try readFile(victim) == Array("precious".utf8))
    }

    @Test("The count of changes is not followed elsewhere")
    func turn() throws {
        let place = TemporaryDirectory()
        let directory = StateDirectory(path: place.state)
        try directory.make()
        let victim = "\(place.path)/victim"
        try writeFile(victim, Array("precious".utf8))
        try #require(unsafe symlink(victim, "\(place.state)/state.turn") == 0)
        #expect(directory.turn() == 0)
        let error = #expect(throws: StateError.self) { try directory.setTurn(7) }
        #expect(error?.code == .untrusted)
        #expect(try readFile(victim) == Array("precious".utf8))
    }

    @Test(
        "A directory of another user is refused",
        .enabled(if: geteuid() == 0, "only root can give a directory away"))
    func foreign() throws {
        let place = TemporaryDirectory()
        let directory = StateDirectory(path: place.state)
        try directory.make()
        try #require(unsafe chown(place.state, 12_345, 12_345) == 0)
        let error = #expect(throws: StateError.self) { try directory.make() }
        #expect(error?.code == .untrusted && error?.path == place.state)
    }
}
