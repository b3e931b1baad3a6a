package import LarderHTTP

extension CurlUpstream {
    /// The content codings that it undoes where a request wants that (`TransferOptions.decodesContent`),
    /// in lower case.
    package static var contentCodings: Set<String> { CurlLibrary.contentCodings }

    /// Whether there are codings that the head of a response names and that it undoes, where the request
    /// wants that.
    package static func undoesCodings(_ fields: Fields) -> Bool {
        let codings = ContentCodings.of(fields)
        return !codings.isEmpty && CurlLibrary.undoes(codings)
    }
}
