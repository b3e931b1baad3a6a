import LarderControl
import LarderHTTP
import Testing

@testable import LarderDaemon
@testable import LarderEngine

@Suite("What commands are told of a transfer")
struct TransferRecordTests {
    static let fact = TransferFact(
        id: 0xAB, uri: "http://h/", principal: "", begun: Timestamp(microseconds: 1),
        deadline: Timestamp(microseconds: 2), received: 3, length: nil, activity: .running)

    static let record = TransferRecord(
        session: "s", id: 0xAB, url: "http://h/", begunMicroseconds: 1, deadlineMicroseconds: 2,
        bytesReceived: 3, activity: .running)

    @Test("is what the session knows of it")
    func mapping() {
        #expect(TransferRecord(Self.fact, in: "s") == Self.record)
        var (fact, record) = (Self.fact, Self.record)
        (fact.principal, fact.length, fact.activity) = ("user:a", 4, .queued)
        record = TransferRecord(
            session: "s", principal: "user:a", id: 0xAB, url: "http://h/", begunMicroseconds: 1,
            deadlineMicroseconds: 2, bytesReceived: 3, length: 4, activity: .queued)
        #expect(TransferRecord(fact, in: "s") == record)
    }

    @Test("has a time and a cause while it waits, and only then")
    func waiting() {
        var (fact, record) = (Self.fact, Self.record)
        fact.activity = .waiting(until: Timestamp(microseconds: 5), cause: "refused")
        record.activity = "waiting"
        record.retryMicroseconds = 5
        record.cause = "refused"
        #expect(TransferRecord(fact, in: "s") == record)
    }
}
