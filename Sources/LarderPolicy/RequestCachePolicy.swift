/// How a request wants the cache to be used (`NSURLRequest.CachePolicy` of the URL Loading System).
package enum RequestCachePolicy: String, Sendable, Codable, CaseIterable {
    /// As HTTP says.
    case useProtocol = "use-protocol"
    /// Never read what is stored; the answer may be stored.
    case reloadIgnoringLocal = "reload-ignoring-local"
    /// Never read what is stored, and tell the caches further on to do so.
    case reloadIgnoringAll = "reload-ignoring-all"
    /// Whatever is stored, however old; else from the origin.
    case returnCacheElseLoad = "return-cache-else-load"
    /// Whatever is stored, however old; else nothing: offline.
    case returnCacheDontLoad = "return-cache-dont-load"
    /// What is stored only once the origin has confirmed it; else from the origin.
    case reloadRevalidating = "reload-revalidating"
}
