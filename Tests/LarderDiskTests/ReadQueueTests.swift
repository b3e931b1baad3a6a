import Synchronization
import Testing

@testable import LarderDisk

@Suite("The order of reading jobs", .timeLimit(.minutes(10)))
struct ReadQueueTests {
    private func taken(_ queue: inout ReadQueue<String>) -> [String] {
        var jobs: [String] = []
        while let job = queue.take() { jobs.append(job) }
        return jobs
    }

    @Test("is lookups first, each kind in the order in which it came")
    func lookupsFirst() {
        var queue = ReadQueue<String>()
        for job in ["b1", "l1", "b2", "l2"] {
            queue.append(job, for: job.hasPrefix("l") ? .lookup : .body)
        }
        #expect(self.taken(&queue) == ["l1", "l2", "b1", "b2"])
        #expect(queue.isEmpty)
    }

    @Test("lets one body go on after every row of lookups")
    func bodiesGoOn() {
        var queue = ReadQueue<String>()
        let row = ReadQueue<String>.lookupsInRow
        for _ in 0..<row * 2 + 1 { queue.append("l", for: .lookup) }
        for _ in 0..<3 { queue.append("b", for: .body) }
        let lookups = Array(repeating: "l", count: row)
        #expect(self.taken(&queue) == lookups + ["b"] + lookups + ["b", "l", "b"])
    }

    @Test("does not count lookups that kept no body waiting")
    func freshRow() {
        var queue = ReadQueue<String>()
        for _ in 0..<100 {
            queue.append("l", for: .lookup)
            #expect(queue.take() == "l")
        }
        queue.append("b", for: .body)
        queue.append("l", for: .lookup)
        #expect(self.taken(&queue) == ["l", "b"])
    }

    @Test(
        "is kept by the pool: lookups overtake bodies that wait, and none is lost at its end")
    func pool() async throws {
        let pool = try ReadPool(threads: 1)
        let (begun, gate) = (try Doorbell(), try Doorbell())
        let order = Mutex<[String]>([])
        // The only thread is busy until all are waiting.
        #expect(
            pool.submit(for: .body) {
                begun.ring()
                gate.wait()
            })
        begun.wait()
        for name in ["b1", "b2", "l1", "b3", "l2"] {
            let purpose = name.hasPrefix("l") ? ReadPurpose.lookup : .body
            #expect(pool.submit(for: purpose) { order.withLock { $0.append(name) } })
        }
        await withCheckedContinuation { continuation in
            pool.stop { continuation.resume() }
            gate.ring()
        }
        #expect(order.withLock { $0 } == ["l1", "l2", "b1", "b2", "b3"])
        #expect(!pool.submit(for: .lookup) {})
    }
}
