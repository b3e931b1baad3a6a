import Foundation

/// What a task does next about its authentication.
enum ChallengeStep {
    /// The delegate is to be asked: the session's first where the challenge is session-wide (§6.1).
    /// Its answer goes to `ChallengeMachine.decided`.
    case ask(URLAuthenticationChallenge, isSessionWide: Bool)
    /// The request is to be sent again, with this.
    case retry(LoadAuthorization?)
    /// The response is an ordinary one, for the program.
    case deliver
    case fail(URLError)
}
