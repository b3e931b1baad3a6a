import LarderStore

/// Where what an answer stands on is found again.
enum StandingPlace: Sendable {
    /// In memory, as long as nothing under its key changes.
    case resident(ResidentMark)
    /// By a look-up, as long as that finds what it did.
    case found(FoundPlace)
}
