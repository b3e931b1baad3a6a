public import Foundation
import LarderCredentials

/// A server or a proxy wants a credential, or a server's certificate is to be judged.
///
/// Answered by calling the completion handler of the delegate's method; the sender does nothing for
/// challenges that a session makes.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
    // Invariant of `@unchecked`: all is set before anybody but the maker has it.

    private let space: URLProtectionSpace
    private let proposal: URLCredential?
    private let failures: Int
    private let response: URLResponse?
    private let cause: (any Error)?
    private let receiver: any URLAuthenticationChallengeSender

    /// Asks the task's delegate instead, where the session's does not implement the method that it
    /// was asked by; nil where the challenge is the task's already.
    ///
    /// Given the challenge, as it would keep itself alive by what it holds of it.
    var passOn:
        (
            (
                URLAuthenticationChallenge,
                @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
            ) -> Void
        )?

    /// The task that `passOn` is about.
    var asker: URLSessionTask?

    /// Makes a challenge, as a program's own `URLProtocol` does.
    public init(
        protectionSpace space: URLProtectionSpace, proposedCredential credential: URLCredential?,
        previousFailureCount: Int, failureResponse response: URLResponse?, error: (any Error)?,
        sender: any URLAuthenticationChallengeSender
    ) {
        self.space = space
        self.proposal = credential
        self.failures = previousFailureCount
        self.response = response
        self.cause = error
        self.receiver = sender
        super.init()
    }

    /// Makes a copy of a challenge that is answered to another sender.
    public init(
        authenticationChallenge challenge: URLAuthenticationChallenge,
        sender: any URLAuthenticationChallengeSender
    ) {
        self.space = challenge.protectionSpace
        self.proposal = challenge.proposedCredential
        self.failures = challenge.previousFailureCount
        self.response = challenge.failureResponse
        self.cause = challenge.error
        self.receiver = sender
        super.init()
    }

    /// One of a session's, which nobody has to send an answer to.
    convenience init(
        _ space: URLProtectionSpace, proposing credential: URLCredential? = nil,
        after failures: Int = 0, response: URLResponse? = nil, error: (any Error)? = nil
    ) {
        self.init(
            protectionSpace: space, proposedCredential: credential,
            previousFailureCount: failures, failureResponse: response, error: error,
            sender: UnheardSender())
    }

    /// Where the credential is wanted.
    open var protectionSpace: URLProtectionSpace { self.space }

    /// The credential that default handling would use, or, behind a failure, the one that was
    /// refused; nil where there is none.
    ///
    /// One without a password only says whom to ask for it.
    open var proposedCredential: URLCredential? { self.proposal }

    /// How often the task has been refused so far, in whatever space; 0 at first.
    open var previousFailureCount: Int { self.failures }

    /// The response that challenges: status 401 or 407; nil for challenges of TLS.
    open var failureResponse: URLResponse? { self.response }

    /// What is wrong with a server by the system's rules (a `URLError`); else nil.
    open var error: (any Error)? { self.cause }

    /// Whom to answer where no completion handler is at hand: without effect for a session's.
    open var sender: (any URLAuthenticationChallengeSender)? { self.receiver }

    /// Whether it goes to the session's delegate first (§6.1).
    var isSessionWide: Bool {
        AuthenticationMethod(named: self.space.authenticationMethod)?.isSessionWide ?? false
    }
}

/// Takes the answer to a challenge that a program made itself.
@preconcurrency
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
    /// The credential is to be used.
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
    /// It is to go on without a credential.
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
    /// The request is to be cancelled.
    func cancel(_ challenge: URLAuthenticationChallenge)
    /// The challenge is to be handled as if nobody had been asked.
    func performDefaultHandling(for challenge: URLAuthenticationChallenge)
    /// The next protection space is wanted.
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

extension URLAuthenticationChallengeSender {
    /// For a sender without it, which is optional: nothing happens.
    public func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    /// For a sender without it, which is optional: nothing happens.
    public func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}

/// The sender of a session's challenges: their answer is the call of a completion handler.
final class UnheardSender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
