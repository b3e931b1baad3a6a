package import LarderHTTP
package import LarderPolicy

/// What a session is made with.
///
/// The rules may change while it runs (`Session.follow`): `policy` and `cachePolicy`, fields that are
/// added, injections, whether challenges are answered and redirections followed. The rest is fixed
/// for its life.
package struct SessionConfiguration: Sendable {
    /// For whom a session works.
    package enum Role: Sendable {
        /// For clients on the other side of a connection: the proxy.
        case intermediary
        /// For the program that it is a part of.
        ///
        /// Heads are shown as origins sent them, and stored ones as a private cache shows them. What
        /// the program itself sends in secret (`Authorization`, `Cookie`) is sealed. A client that
        /// leaves ends its fetch, and a body that breaks off has failed: nothing is asked for twice,
        /// and nothing is kept in part.
        case userAgent
    }

    /// The session's name in the configuration; for logs.
    package var name: String
    /// The cache's name in `Cache-Status`: a token (RFC 9211 §2).
    package var cacheName: String
    package var role = Role.intermediary
    package var policy: PolicyConfiguration
    /// How requests that say nothing themselves want the cache to be used.
    package var cachePolicy: RequestCachePolicy
    /// How many bytes of a body a fetch holds in memory for its readers and the store before it
    /// stops reading from the origin; also what a late client may join behind.
    package var window: ByteCount
    /// A fetch whose last client has left goes on if no more than this is left of it (known or
    /// found out on the way) and its response is being stored.
    package var finishAfterClientLeft: ByteCount
    /// How long the store may hold up a transfer without any progress before the storing is given up.
    package var storePatience = Duration.seconds(1)
    /// How long a client may take nothing of a response while others that share it wait for it: then it
    /// loses the rest.
    ///
    /// No less than the door itself waits for a client that takes nothing. Progress shows here only
    /// when the door takes more for it: of one that reads slowly and steadily the socket's buffer
    /// hides it, at 20 KB/s for more than a minute.
    package var clientPatience = Duration.seconds(120)
    /// How long a key whose response could not be shared is fetched by each client on its own.
    package var uncollapsedTime = Duration.seconds(30)
    /// How long nothing is validated in the background for a key after that has failed.
    package var validationPause = Duration.seconds(5)
    /// How long a request waits for the head that another one's fetch is to bring: then one of those who
    /// wait asks the origin itself, and the others wait for that.
    package var collapsingPatience = Duration.seconds(5)
    /// Tell the cache's key in `Cache-Status` (RFC 9211 §2.7).
    package var showsCacheKey: Bool
    /// Added to requests that do not have them; names that are the connection's, the credentials' or
    /// the framing's are left out.
    package var additionalFields = Fields()
    /// To which requests which credential is added.
    package var injections = InjectionRules()
    /// Challenges are answered with the credentials that the session keeps for their spaces.
    package var answersChallenges = true
    /// Redirections are followed here; else they are the client's business.
    package var followsRedirects = false
    /// How many answered exchanges are remembered for explanations; 0: none.
    package var remembersExchanges: Int

    package init(
        name: String = "default", cacheName: String = "larder",
        policy: PolicyConfiguration = PolicyConfiguration(),
        cachePolicy: RequestCachePolicy = .useProtocol, window: ByteCount = .mebibytes(2),
        finishAfterClientLeft: ByteCount = .mebibytes(16), showsCacheKey: Bool = false,
        remembersExchanges: Int = 2048
    ) {
        self.name = name
        self.cacheName = cacheName
        self.policy = policy
        self.cachePolicy = cachePolicy
        self.window = window
        self.finishAfterClientLeft = finishAfterClientLeft
        self.showsCacheKey = showsCacheKey
        self.remembersExchanges = remembersExchanges
    }
}
