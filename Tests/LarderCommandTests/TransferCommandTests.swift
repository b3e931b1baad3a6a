import ArgumentParser
import LarderControl
import Testing

@testable import larder

@Suite("larder transfers")
struct TransferCommandTests {
    private static let now: Int64 = 1_800_000_000_000_000

    private static func transfer(
        id: UInt64 = 0xAB, url: String = "http://h/a", received: UInt64 = 12 << 20,
        length: UInt64? = 4 << 30, _ activity: TransferRecord.Activity = .running,
        retry: Int64? = nil, cause: String? = nil
    ) -> TransferRecord {
        TransferRecord(
            session: "downloads", id: id, url: url, begunMicroseconds: Self.now,
            deadlineMicroseconds: Self.now, bytesReceived: received, length: length,
            activity: activity, retryMicroseconds: retry, cause: cause)
    }

    private static func lines(_ transfers: [TransferRecord], width: Int? = nil) -> [String] {
        var text = TransfersText(width: width, now: Self.now)
        return transfers.flatMap { text.add($0) } + text.finish()
    }

    @Test("shows what has come, of how much, and what it waits for")
    func text() {
        var split = Self.transfer(id: .max, url: "http://h/\u{1B}", .queued)
        split.principal = "user:alice"
        let transfers = [
            Self.transfer(), split,
            Self.transfer(
                received: 5, length: nil, .waiting, retry: Self.now + 31_000_001,
                cause: "connection\nrefused"),
        ]
        #expect(
            Self.lines(transfers) == [
                "ID                URL                     RECEIVED  "
                    + "STATE                               SESSION",
                "00000000000000ab  http://h/a       12 MiB of 4 GiB  "
                    + "running                             downloads",
                "ffffffffffffffff  http://h/\\u{1b}  12 MiB of 4 GiB  "
                    + "queued                              downloads (user:alice)",
                "00000000000000ab  http://h/a                   5 B  "
                    + "waits 32 s: connection\\u{a}refused  downloads",
            ])
        #expect(Self.lines([]).isEmpty)
    }

    @Test(
        "tells how long one waits, rounded up",
        arguments: [
            (0, "waits 0 s"), (-5_000_000, "waits 0 s"), (1, "waits 1 s"),
            (1_000_000, "waits 1 s"), (599_000_001, "waits 10 min"), (nil, "waits"),
        ] as [(Int64?, String)])
    func waiting(_ left: Int64?, _ expected: String) {
        let transfer = Self.transfer(
            received: 0, length: nil, .waiting, retry: left.map { Self.now + $0 })
        #expect(
            Self.lines([transfer]).last
                == "00000000000000ab  http://h/a       0 B  \(expected)  downloads")
    }

    @Test("shows a word that it does not know as it is")
    func unknown() {
        var transfer = Self.transfer()
        transfer.activity = "later"
        #expect(Self.lines([transfer]).last?.contains("  later  ") == true)
    }

    @Test("A narrow terminal costs the middle of the URL")
    func narrow() {
        let url = "http://h/" + String(repeating: "x", count: 100) + "/end"
        let line = Self.lines([Self.transfer(url: url)], width: 80).last
        #expect(line?.count == 80)
        #expect(line?.contains("http://h/xxx") == true)
        #expect(line?.contains("x/end  12 MiB") == true)
    }

    @Test("lists without a further verb")
    func listing() throws {
        let list = try #require(
            try Larder.parseAsRoot(["transfers", "--session", "a", "--json"]) as? TransfersList)
        #expect(list.transfers.session == "a")
        #expect(list.json)
        #expect(try Larder.parseAsRoot(["transfers", "list"]) is TransfersList)
        #expect(
            NearestVerb.failure(of: ["transfers", "cancle"])?.remedy?.contains("cancel") == true)
    }

    @Test(
        "cancels what is named, or all",
        arguments: [
            (["ab"], [.id(0xAB)]), (["00000000000000AB", "1", "ab"], [.id(0xAB), .id(1)]),
            (["--all"], [.all]), ([], nil), (["--all", "ab"], nil), (["http://h/"], nil),
            (["ab", "xyz"], nil),
        ] as [([String], [TransferSelection]?)])
    func selection(_ arguments: [String], _ expected: [TransferSelection]?) throws {
        guard let expected else {
            #expect(throws: (any Error).self) { try TransfersCancel.parse(arguments) }
            return
        }
        #expect(try TransfersCancel.parse(arguments).selections == expected)
    }

    @Test("names what is not there")
    func missing() {
        let failure = CommandFailure.noTransfer(["00000000000000ab", "0000000000000001"])
        #expect(failure.status == .nothingFound)
        #expect(
            failure.lines == [
                "larder: there is no transfer 00000000000000ab, 0000000000000001; \"larder transfers\" "
                    + "shows which there are"
            ])
    }
}
