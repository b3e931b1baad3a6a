extension NSURLRequest {
    /// How stored responses are used for a request.
    ///
    /// Raw values are Apple's; Foundation's own on Linux differ.
    public enum CachePolicy: UInt, Sendable {
        /// By the rules of the protocol: for HTTP RFC 9111, as a private cache.
        case useProtocolCachePolicy = 0
        /// Always from the server; the response may be stored.
        case reloadIgnoringLocalCacheData = 1
        /// Any stored response, however old; else from the server.
        case returnCacheDataElseLoad = 2
        /// Any stored response; else `URLError.resourceUnavailable`, without the network.
        case returnCacheDataDontLoad = 3
        /// Always from the server, and caches on the way are told to do so, too.
        case reloadIgnoringLocalAndRemoteCacheData = 4
        /// A stored response only once the server has said that it is good.
        case reloadRevalidatingCacheData = 5

        /// The older name of `reloadIgnoringLocalCacheData`.
        public static var reloadIgnoringCacheData: CachePolicy { .reloadIgnoringLocalCacheData }
    }

    /// What kind of traffic a request is.
    public enum NetworkServiceType: UInt, Sendable {
        /// Nothing special.
        case `default` = 0
        /// Control of voice over IP.
        case voip = 1
        /// Video of a conversation.
        case video = 2
        /// What nobody waits for.
        case background = 3
        /// Voice of a conversation.
        case voice = 4
        /// What somebody waits for.
        case responsiveData = 6
        /// Audio and video that is played while it is loaded.
        case avStreaming = 8
        /// Audio and video that reacts.
        case responsiveAV = 9
        /// Signalling of calls.
        case callSignaling = 11

        /// Foundation's name of `callSignaling` on Linux.
        public static var networkServiceTypeCallSignaling: NetworkServiceType { .callSignaling }
    }

    /// Who chose the URL of a request.
    public enum Attribution: UInt, Sendable {
        /// The program.
        case developer = 0
        /// Whoever uses it.
        case user = 1
    }
}
