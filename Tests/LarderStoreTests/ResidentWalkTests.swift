import LarderHTTP
import LarderPolicy
import Testing

@testable import LarderStore

@Suite("A walk through what lies in memory")
struct ResidentWalkTests {
    @Test("meets each response once, in short steps", arguments: [0, 1, 127, 128, 129, 2000])
    func walk(_ count: Int) {
        let store = MemoryStore(
            MemoryConfiguration(capacity: .mebibytes(64), maximumObject: .kibibytes(4)))
        for number in 0..<count { store.put("\(number)", body: Sample.body(1)) }
        var met: [String] = []
        var place: ResidentPlace? = .start
        while let here = place {
            let page = store.residentObjects(from: here)
            #expect(page.objects.count <= 128)
            #expect(page.objects.allSatisfy { $0.lowerID == nil && !$0.isLanding })
            met += page.objects.map(\.object.key.parts.uri)
            place = page.next
        }
        #expect(met.count == count)
        #expect(Set(met) == Set((0..<count).map { Sample.key("\($0)").parts.uri }))
    }

    @Test("survives that everything goes meanwhile, and places that never were")
    func changes() {
        let store = MemoryStore(
            MemoryConfiguration(capacity: .mebibytes(64), maximumObject: .kibibytes(4)))
        for number in 0..<1000 { store.put("\(number)", body: Sample.body(1)) }
        var page = store.residentObjects(from: .start)
        store.removeAll(where: { _ in true }) { _ in }
        var met = 0
        while let place = page.next {
            page = store.residentObjects(from: place)
            met += page.objects.count
        }
        #expect(met == 0)
        for place in [
            ResidentPlace(part: -1), ResidentPlace(part: .max), ResidentPlace(slot: -1),
            ResidentPlace(slot: .max),
        ] { #expect(store.residentObjects(from: place).objects.isEmpty) }
    }

    @Test("what lies under one key comes the most recent first")
    func key() {
        let store = MemoryStore(MemoryConfiguration(capacity: .mebibytes(1)))
        for (second, language) in [(1, "de"), (3, "en"), (2, "fr")] as [(Int64, String)] {
            store.put("a", Sample.head(at: second, language: language))
        }
        let found = store.residentObjects(of: Sample.key("a"))
        #expect(found.map(\.object.head.responseTime.seconds) == [3, 2, 1])
        #expect(store.residentObjects(of: Sample.key("b")).isEmpty)
    }
}
