import LarderControl
import Testing

@testable import larder

@Suite("The tiers of a cache, seen as one")
struct CacheCopiesTests {
    /// What lies on disk: names 1 and 2, of two languages, stored at once.
    private static let onDisk = [
        Self.object(1, "de"), Self.object(2, "en"),
    ]

    private static func object(_ id: UInt64, _ language: String) -> CacheObject {
        var object = CacheObject(Self.resident(id, language))
        object.tier = .disk
        return object
    }

    /// - Parameter moment: of its storing.
    private static func resident(
        _ id: UInt64, _ language: String, onDisk diskID: UInt64? = nil, at moment: Int64 = 5,
        hits: UInt64 = 0
    ) -> ResidentResponse {
        ResidentResponse(
            id: id, diskID: diskID, url: "http://h/",
            variant: [ControlField(name: "Accept-Language", value: language)], status: 200,
            requestTimeMicroseconds: 1, responseTimeMicroseconds: 2,
            storedTimeMicroseconds: moment, lastUsedMicroseconds: 6, lifetimeMilliseconds: 0,
            lifetimeSource: "max-age", currentAgeMilliseconds: 0, bodyBytes: 1, hits: hits)
    }

    struct Case: Sendable {
        var resident: [ResidentResponse]
        /// Name, tier and hits of each.
        var expected: [String]
    }

    @Test(
        "tell each response once, by its name on disk or the moment of its storing",
        arguments: [
            Case(resident: [], expected: ["1 disk 0", "2 disk 0"]),
            Case(
                resident: [Self.resident(9, "en", onDisk: 2, at: 7, hits: 3)],
                expected: ["1 disk 0", "2 memory+disk 3"]),
            // The disk was not known to have it when memory was asked.
            Case(
                resident: [Self.resident(9, "en", hits: 3)],
                expected: ["1 disk 0", "2 memory+disk 3"]),
            Case(
                resident: [Self.resident(9, "fr"), Self.resident(8, "en", at: 7)],
                expected: ["1 disk 0", "2 disk 0", "9 memory 0", "8 memory 0"]),
            Case(
                resident: [Self.resident(9, "de"), Self.resident(8, "de")],
                expected: ["1 memory+disk 0", "2 disk 0", "8 memory 0"]),
            // A name in memory is none on disk, which has let go of the second.
            Case(
                resident: [
                    Self.resident(7, "fr", at: 7), Self.resident(8, "it", onDisk: 7, at: 8),
                ],
                expected: ["1 disk 0", "2 disk 0", "7 memory 0", "8 memory 0"]),
        ])
    func joined(_ c: Case) {
        let objects = CacheCopies.joined(Self.onDisk, c.resident)
        #expect(objects.map { "\($0.id) \($0.tier.rawValue) \($0.hits)" } == c.expected)
    }
}
