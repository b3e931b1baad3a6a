/// A transfer that a background session keeps.
package struct TransferRecord: Codable, Sendable, Equatable {
    /// What a transfer is doing; another word is one of a later release.
    package enum Activity: String, Sendable {
        /// Its response is arriving.
        case running
        /// It will be asked for as soon as fewer others are.
        case queued
        /// It broke off, and is asked for again later.
        case waiting
    }

    package var session: String
    /// nil where the session is not split by principal.
    package var principal: String?
    /// Its number among those of its session, in the form that people are shown.
    package var id: String
    package var url: String
    package var begunMicroseconds: Int64
    /// When it is given up.
    package var deadlineMicroseconds: Int64
    /// How far the response that is arriving has come, from the beginning of the whole.
    package var bytesReceived: UInt64
    /// How many bytes the whole has; nil where it is not known.
    package var length: UInt64?
    /// A word of ``Activity``.
    package var activity: String
    /// When it is asked for again, in microseconds since 1970; nil unless it waits for that.
    package var retryMicroseconds: Int64?
    /// Why it broke off, for people; nil unless it waits.
    package var cause: String?

    package init(
        session: String, principal: String? = nil, id: UInt64, url: String,
        begunMicroseconds: Int64, deadlineMicroseconds: Int64, bytesReceived: UInt64,
        length: UInt64? = nil, activity: Activity, retryMicroseconds: Int64? = nil,
        cause: String? = nil
    ) {
        self.session = session
        self.principal = principal
        self.id = Self.text(of: id)
        self.url = url
        self.begunMicroseconds = begunMicroseconds
        self.deadlineMicroseconds = deadlineMicroseconds
        self.bytesReceived = bytesReceived
        self.length = length
        self.activity = activity.rawValue
        self.retryMicroseconds = retryMicroseconds
        self.cause = cause
    }

    /// A transfer's number as people are shown it: 16 hexadecimal digits.
    package static func text(of id: UInt64) -> String {
        let digits = String(id, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The number that a person means by such digits; nil where they are none.
    ///
    /// Capitals are taken, and zeros at the beginning may be missing.
    package static func id(from text: String) -> UInt64? {
        guard !text.isEmpty, text.utf8.count <= 16, text.allSatisfy(\.isHexDigit),
            text.utf8.allSatisfy({ $0 < 0x80 })
        else { return nil }
        return UInt64(text, radix: 16)
    }
}
