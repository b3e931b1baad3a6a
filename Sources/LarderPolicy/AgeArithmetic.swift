package import LarderHTTP

/// The steps by which a stored response's age is reckoned (RFC 9111 §4.2.3), each under the name that
/// the RFC gives it.
package struct AgeArithmetic: Sendable, Equatable {
    /// The `Date` of the response; nil where it has none that is a date.
    package let dateValue: Timestamp?
    /// The first member of `Age`; zero where that is no number.
    package let ageValue: Duration
    package let responseDelay: Duration
    package let apparentAge: Duration
    package let correctedAgeValue: Duration
    package let residentTime: Duration

    private init(of head: StoredHead, _ facts: HeadFacts, at now: Timestamp) {
        let date = facts.date
        self.dateValue = date
        self.ageValue = facts.ageValue
        self.responseDelay = max(.zero, head.responseTime - head.requestTime)
        // `Date` has whole seconds, so the apparent age is taken between whole seconds: else a
        // response would be up to a second old at its birth.
        let received = Timestamp(seconds: head.responseTime.seconds)
        self.apparentAge = max(.zero, received - (date ?? received))
        self.correctedAgeValue = self.ageValue + self.responseDelay
        // A clock that was set back makes nothing younger than it was when it came.
        self.residentTime = max(.zero, now - head.responseTime)
    }

    /// The age of a stored response at one moment.
    package static func of(_ head: StoredHead, at now: Timestamp) -> AgeArithmetic {
        AgeArithmetic(of: head, head.facts, at: now)
    }

    package var correctedInitialAge: Duration { max(self.apparentAge, self.correctedAgeValue) }

    /// Never negative.
    package var currentAge: Duration { self.correctedInitialAge + self.residentTime }
}
