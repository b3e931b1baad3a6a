package import LarderConfig
package import LarderControl

/// Answers about the cookies and credentials of a session that no proxy runs for.
package struct StateAnswers: Sendable {
    private let loaded: LoadedSettings
    private let settings: SessionSettings

    package init(_ loaded: LoadedSettings, _ settings: SessionSettings) {
        self.loaded = loaded
        self.settings = settings
    }

    /// Answers `.cookies` and `.credentials` line by line, as the running proxy would.
    ///
    /// - Throws: `ControlRefusal` with what a person is to be told.
    package func answer(
        _ request: ControlRequest, _ reply: @Sendable (ControlReply) async throws -> Void
    ) async throws {
        throw ControlError(.notRunning, "no proxy is running")
    }
}
