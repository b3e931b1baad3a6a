package import LarderHTTP

/// Which responses a tier takes in at first sight: a value, and an administrator's choice.
///
/// What is turned away is remembered where evicted entries are (``GhostTable``), and taken in when it
/// is asked for again while it is remembered. What takes the place of a stored response, or adds to
/// one, has been asked for before.
package struct AdmissionRules: Sendable, Equatable {
    package enum Verdict: Sendable, Equatable {
        /// - Parameter below: its body must be shorter; nil: as long as it likes.
        case admit(below: ByteCount?)
        case refuse(SinkAbandonment)
    }

    /// Bodies of this size and above want a second request; nil: none does.
    package var largeFrom: ByteCount?
    /// Whether the others are taken in at their first request.
    package var takesOnceSeen: Bool

    package init(largeFrom: ByteCount? = nil, takesOnceSeen: Bool = true) {
        self.largeFrom = largeFrom
        self.takesOnceSeen = takesOnceSeen
    }

    /// Whether anything is ever turned away.
    package var isSelective: Bool { self.largeFrom != nil || !self.takesOnceSeen }

    /// - Parameters:
    ///   - length: of the whole body, where it is known.
    ///   - isKnown: it is remembered, or stored already.
    package func judge(length: UInt64?, isKnown: Bool) -> Verdict {
        if isKnown { return .admit(below: nil) }
        if let largeFrom, let length, length >= largeFrom.bytes { return .refuse(.largeSeenOnce) }
        if !self.takesOnceSeen { return .refuse(.seenOnce) }
        return .admit(below: length == nil ? self.largeFrom : nil)
    }
}
