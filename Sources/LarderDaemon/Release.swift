/// Which release this is.
package enum Release {
    /// The version, as `larder version` and the control socket say it (semantic versioning).
    package static let name = "0.1.0"
}
