public import Foundation

/// The credentials of one or more sessions.
open class URLCredentialStorage: NSObject, @unchecked Sendable {
    private static let common = URLCredentialStorage()

    open class var shared: URLCredentialStorage { self.common }

    override init() {
        super.init()
    }

    /// One that is in memory alone.
    static func ephemeral() -> URLCredentialStorage { URLCredentialStorage() }
}

/// A credential: a user and a password, a client certificate, or trust in a server.
open class URLCredential: NSObject, @unchecked Sendable {
    /// How long it is kept.
    public enum Persistence: UInt, Sendable {
        case none = 0
        case forSession = 1
        case permanent = 2
        case synchronizable = 3
    }
}

/// Where a credential is good.
open class URLProtectionSpace: NSObject, @unchecked Sendable {}

/// A server wants to know who asks, or a client is to say whether it trusts a server.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
    /// Asks the task's delegate instead, where the session's does not implement the method that it
    /// was asked by; nil where the challenge is the task's already.
    var passOn:
        (
            (@escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void) ->
                Void
        )?

    /// Whom to answer.
    open var sender: (any URLAuthenticationChallengeSender)?
}

/// Takes the answer to a challenge that a program made itself.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
    func cancel(_ challenge: URLAuthenticationChallenge)
    func performDefaultHandling(for challenge: URLAuthenticationChallenge)
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}
