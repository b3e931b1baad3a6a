import LarderHTTP

/// A body that can end with an error of the program's own, which its task ends with as it is.
protocol ProgramBody: BodySource {
    /// The error, once `next` has said that the body failed; nil: what `BodyFailure` says is all.
    var programError: (any Error)? { get }
}
