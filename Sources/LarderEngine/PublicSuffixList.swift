import CPSL
package import LarderCookies

/// The public suffixes as libpsl knows them, the private section (github.io) included.
///
/// Any thread may ask: libpsl writes to a context while it loads it and only reads it afterwards,
/// for names in ASCII also without a look at the locale. Freed with this object.
@safe package final class PublicSuffixList: PublicSuffixes {
    /// The list of this process, read when first asked for: the newer of the distribution's file and
    /// the one built into libpsl.
    ///
    /// Where neither can be had, every domain counts as a public suffix: cookies are then kept for
    /// single hosts, and none is given to the neighbours of its host. `isMissing` says so.
    package static let system: any PublicSuffixes = PublicSuffixList() ?? EverySuffix()

    /// Whether there is no list, which a person should hear of.
    package static var isMissing: Bool { !(self.system is PublicSuffixList) }

    /// Invariant: set once, not written to after loading, freed in `deinit` alone.
    private nonisolated(unsafe) let context: OpaquePointer

    /// Reads a file: a list in text, or compiled (`.dafsa`); nil where it cannot be read or is no
    /// such list.
    package convenience init?(file: String) {
        unsafe self.init(adopting: psl_load_file(file))
    }

    private convenience init?() {
        // Without a file's name psl_latest compares what the distribution has with what is built in.
        unsafe self.init(adopting: psl_latest(nil))
    }

    private init?(adopting loaded: OpaquePointer?) {
        guard let loaded = unsafe loaded else { return nil }
        guard unsafe Self.isPlausible(loaded) else {
            // It leaves the context that is built in alone.
            unsafe psl_free(loaded)
            return nil
        }
        unsafe self.context = unsafe loaded
    }

    deinit { unsafe psl_free(self.context) }

    /// Whether the list knows what every list knows.
    ///
    /// libpsl loads an empty file, or one of something else, as a list without suffixes; by such a
    /// one a host could set cookies for all of co.uk.
    private static func isPlausible(_ context: OpaquePointer) -> Bool {
        unsafe Self.ask(context, "co.uk") && !Self.ask(context, "example.co.uk")
            && Self.ask(context, "com")
    }

    /// libpsl answers 1 or 0; what else it might say is taken for the answer that refuses a cookie.
    private static func ask(_ context: OpaquePointer, _ domain: String) -> Bool {
        unsafe psl_is_public_suffix2(context, domain, PSL_TYPE_ANY) != 0
    }

    package func isPublicSuffix(_ domain: String) -> Bool {
        // C would see only what stands before a zero byte; and of a name with an empty label it
        // would look at the labels on one side.
        guard !domain.utf8.isEmpty, !domain.utf8.contains(0) else { return true }
        return unsafe Self.ask(self.context, domain)
    }
}
