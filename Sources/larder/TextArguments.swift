import ArgumentParser
import LarderHTTP

/// A pattern over URLs as an argument, for listing, purge and export.
func patternArgument(_ text: String) throws(ValidationError) -> String {
    // A variable of a script that was not set, most likely.
    guard !text.isEmpty else {
        throw ValidationError("an empty pattern fits no URL; \"*\" fits each")
    }
    return text
}

/// The name of a method as an argument; in capitals, as methods that are in use are.
func methodArgument(_ text: String) throws(ValidationError) -> String {
    guard !text.isEmpty, text.utf8.allSatisfy(ASCII.isToken) else {
        throw ValidationError("that is not the name of a method; one is, for example, GET")
    }
    return text.uppercased()
}

/// A URL as an argument, as it is stored: without the fragment, which a browser's address may have and
/// a request never has (RFC 9110 §7.1).
///
/// - Throws: for a user in it, a part of the URL that goes to no origin by HTTP.
func urlArgument(_ text: String) throws(ValidationError) -> String {
    let url = text.prefix { $0 != "#" }
    let parts = url.split(separator: "://", maxSplits: 1)
    if parts.count == 2, parts[0].lowercased().hasPrefix("http"),
        parts[1].prefix(while: { !"/?".contains($0) }).contains("@")
    {
        throw ValidationError("a stored URL has no user and no password; leave them out")
    }
    return String(url)
}
