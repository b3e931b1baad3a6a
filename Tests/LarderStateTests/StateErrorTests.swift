import LarderState
import Testing

@Suite("Errors of a session's state")
struct StateErrorTests {
    @Test("tell the file, the cause and the remedy in one line")
    func description() {
        let error = StateError(
            .badKeyFile, path: "/s/key", cause: "others may read it", remedy: "chmod 600 it")
        #expect("\(error)" == "/s/key: others may read it; chmod 600 it")
    }
}
