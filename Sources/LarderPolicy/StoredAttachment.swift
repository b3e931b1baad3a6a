/// What whoever stored a response wants kept with it, and no rule of HTTP knows of.
///
/// Policy and stores pass it on as it is; it is never sent to anybody.
package struct StoredAttachment: Sendable {
    /// Kept wherever the response is kept.
    package var bytes: [UInt8]
    /// Kept as long as the response lies in memory: what has no bytes.
    package var resident: (any Sendable)?

    package init(bytes: [UInt8], resident: (any Sendable)? = nil) {
        self.bytes = bytes
        self.resident = resident
    }
}

extension StoredAttachment: Equatable {
    /// Whether both are the same wherever they are kept.
    package static func == (a: StoredAttachment, b: StoredAttachment) -> Bool {
        a.bytes == b.bytes
    }
}
