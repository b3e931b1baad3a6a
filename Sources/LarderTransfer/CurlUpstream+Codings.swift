package import LarderHTTP

extension CurlUpstream {
    /// The content codings that it undoes where a request wants that (`TransferOptions.decodesContent`),
    /// in lower case.
    package static var contentCodings: Set<String> { CurlLibrary.contentCodings }

    /// Whether it undoes the codings that the head of a response names, where the request wants that.
    ///
    /// All of them or none: those that it knows may lie beneath one that it does not know.
    package static func undoesCodings(_ fields: Fields) -> Bool {
        let codings = ContentCodings.of(fields)
        return !codings.isEmpty && codings.allSatisfy(self.contentCodings.contains)
    }
}
