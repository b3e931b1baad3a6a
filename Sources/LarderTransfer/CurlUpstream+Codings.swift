extension CurlUpstream {
    /// The content codings that it undoes where a request wants that (`TransferOptions.decodesContent`),
    /// in lower case.
    package static var contentCodings: Set<String> { CurlLibrary.contentCodings }
}
