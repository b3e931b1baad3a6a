/// What became of an archive's records.
package struct ImportOutcome: Codable, Sendable, Equatable {
    /// Responses that were stored, and the bytes of their bodies.
    package var stored: UInt64 = 0
    package var bytes: UInt64 = 0
    /// Responses that were not, by the word of the reason.
    package var refused: [String: UInt64] = [:]
    /// Records that are no responses, by their type: they are passed over.
    package var skipped: [String: UInt64] = [:]
    /// Records that could not be read.
    package var malformed: UInt64 = 0
    /// The archive ends in the midst of a record, or could not be read any further.
    package var isCutShort = false

    /// A response of a principal that the session does not have, and one of none where it has some.
    package static let ofOtherPrincipals = "other-principal"
    package static let ofNoPrincipal = "no-principal"

    package init() {}

    package mutating func refuse(_ reason: String) {
        self.refused[reason, default: 0] &+= 1
    }

    package mutating func skip(_ type: String) {
        // Types are strangers' words: not any number of them.
        let isKnown = self.skipped[type] != nil || self.skipped.count < 32
        self.skipped[isKnown ? type : "other", default: 0] &+= 1
    }
}
