import Glibc
import LarderLMDB
import Testing

@testable import LarderState

@Suite("Errors of a session's state")
struct StateErrorTests {
    @Test("tell the file, the cause and the remedy in one line")
    func description() {
        let error = StateError(
            .badKeyFile, path: "/s/key", cause: "others may read it", remedy: "chmod 600 it")
        #expect("\(error)" == "/s/key: others may read it; chmod 600 it")
    }

    static let cases: [(Int32, StateError.Code, String)] = [
        (EACCES, .denied, "let the user"), (EPERM, .denied, "let the user"),
        (EROFS, .unavailable, "make the file system writable"), (ENOSPC, .full, "make room"),
        (EDQUOT, .full, "make room"), (EBUSY, .unavailable, "if it is a mount point"),
        (EIO, .unavailable, "see whether the disk"),
    ]

    @Test("say what a person can do", arguments: Self.cases)
    func remedy(_ number: Int32, _ code: StateError.Code, _ remedy: String) {
        let error = StateError(system: number, "open", path: "/s/state.mdb")
        #expect(error.code == code)
        #expect(error.remedy.hasPrefix(remedy), "\(error.remedy)")
        #expect(error.cause.hasPrefix("open: "))
        // The same through LMDB, but for what it does not tell apart.
        guard number != EBUSY else { return }
        let other = StateError(
            LMDBError(returnCode: number, operation: "mdb_env_open"), path: "/s/state.mdb")
        #expect(other.code == code && other.remedy == error.remedy, "\(other)")
    }
}
