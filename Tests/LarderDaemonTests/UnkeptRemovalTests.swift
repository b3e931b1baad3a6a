import LarderControl
import LarderStore
import Testing

@testable import LarderDaemon

@Suite("A purge of what may come back")
struct UnkeptRemovalTests {
    @Test(
        "is refused with its cause and remedy",
        arguments: [
            (UnkeptRemoval.Code.notWritten, ControlFailure.Code.inputOutput),
            (.unavailable, .unavailable),
        ])
    func refusal(_ code: UnkeptRemoval.Code, _ expected: ControlFailure.Code) {
        let unkept = UnkeptRemoval(code, path: "/c/cache.lock", cause: "full", remedy: "free some")
        let failure = ControlRefusal(unkept).failure
        #expect(failure.code == expected)
        #expect(
            failure.message
                == "/c/cache.lock: full: what was removed may come back at the next start; "
                + "free some")
    }
}
