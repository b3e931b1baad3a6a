import LarderControl
import Testing

@Suite("Messages of the control socket")
struct ControlCodecTests {
    static let requests: [ControlRequest] = [
        .status, .statistics(session: nil), .statistics(session: "a"), .listMemory(session: "b"),
        .listMemory(session: "b", copiesInFull: true), .showMemory(session: "b", url: "http://h/"),
        .readMemory(session: "b", url: "http://h/", id: .max),
        .listFetches, .listTransfers(session: nil), .listTransfers(session: "a"),
        .cancelTransfers(session: nil, .all), .cancelTransfers(session: "a", .id(.max)),
        .listMissing(session: "a", clears: true), .purge(session: nil, .all),
        .purge(session: "a", .url("http://h/\n\u{0}é")),
        .purge(session: nil, .host("h")), .purge(session: nil, .pattern("*")), .reload,
        .explain(
            ExplainQuestion(
                session: "default", method: "HEAD", url: "http://h/\"",
                fields: [ControlField(name: "A", value: "b\n"), ControlField(name: "A", value: "")])
        ),
        .cookies(
            session: "a", principal: "user:b",
            .list(CookieFilter(name: [0xFF], domain: ".h", path: "/"), reveals: true)),
        .cookies(session: "a", principal: nil, .put([Self.cookie])),
        .cookies(session: "a", principal: nil, .remove(CookieFilter())),
        .credentials(session: "a", principal: nil, .list),
        .credentials(
            session: "a", principal: "uid:0",
            .put(Self.credential, secret: ControlSecret([0, 10, 255]))),
        .credentials(session: "a", principal: nil, .remove(.named("x"))),
        .credentials(
            session: "a", principal: nil, .test(.named("x"), url: "http://h/", isInsecure: true)),
        .credentials(session: "a", principal: nil, .rotateKey),
    ]

    static let cookie = CookieRecord(
        name: [0xFF, 10], value: ControlSecret([0, 0xFE]), valueBytes: 2, domain: "h",
        isHostOnly: true, path: "/é", isSecure: true, isHTTPOnly: false, sameSite: "lax",
        createdMicroseconds: .min, lastUsedMicroseconds: .max, expiryMicroseconds: nil)

    static let credential = CredentialRecord(
        name: .space(
            SpaceRecord(host: "h", port: .max, scheme: "https", realm: "r\n", method: "digest"),
            user: "é"), kind: "password", user: "é", persistence: "permanent", isDefault: true)

    static let status: DaemonStatus = {
        var status = DaemonStatus(
            release: "1", pid: .max, startedMicroseconds: .min, listeners: ["unix:/r\n"],
            sessions: [], configuration: "/é")
        var clients = DaemonStatus.Clients()
        clients.requests = .max
        clients.ownAnswers = ["403": .max]
        status.clients = clients
        status.origins = DaemonStatus.Origins()
        return status
    }()

    static let replies: [ControlReply] = [
        .status(
            DaemonStatus(
                release: "1", pid: 7, startedMicroseconds: .max, listeners: ["127.0.0.1:1"],
                sessions: ["default"], configuration: nil)), .status(Self.status),
        .statistics(SessionStatistics(session: "a", kind: "default", disk: .init(objects: .max))),
        .objects([
            MemoryObject(
                id: .max, url: "http://h/\"\\", status: 200, bytes: 5, ageMilliseconds: 1,
                freshForMilliseconds: -1, hits: 0, isOnDisk: true, lastUsedMicroseconds: .min),
            MemoryObject(
                id: 1, url: "u", status: 200, bytes: 5, ageMilliseconds: 1,
                freshForMilliseconds: 1, hits: 0, isOnDisk: false,
                partial: PartialObject(ranges: [0...1, 3...(.max)], completeLength: nil),
                landingMicroseconds: .max, variant: [ControlField(name: "A", value: "\"")]),
        ]),
        .copies(ResidentCopies(ids: [1, .max], hits: [0, .max])),
        .piece(BodyPiece([0, 10, 255])), .piece(BodyPiece([])),
        .resident(
            ResidentResponse(
                id: .max, diskID: 3, url: "http://h/\n",
                variant: [ControlField(name: "A", value: "")], status: 200,
                requestTimeMicroseconds: .min, responseTimeMicroseconds: 1,
                storedTimeMicroseconds: 2, lastUsedMicroseconds: .max, lifetimeMilliseconds: 0,
                lifetimeSource: "max-age", currentAgeMilliseconds: 9, bodyBytes: .max,
                partial: PartialObject(ranges: [0...1], completeLength: nil), hits: 2)),
        .fetch(
            FetchRecord(
                session: "a", principal: "user:b", url: "u", clients: 3, bytesReceived: .max)),
        .transfer(
            TransferRecord(
                session: "a", id: 0, url: "http://h/\"\n", begunMicroseconds: .min,
                deadlineMicroseconds: .max, bytesReceived: 0, activity: .queued)),
        .transfer(
            TransferRecord(
                session: "a", principal: "user:b", id: .max, url: "u", begunMicroseconds: 1,
                deadlineMicroseconds: 2, bytesReceived: .max, length: .max, activity: .waiting,
                retryMicroseconds: .max, cause: "é\n")),
        .missing(
            MissingURL(
                session: "a", method: "GET", url: "http://h/\n", count: .max,
                firstMicroseconds: .min, lastMicroseconds: 0)), .unlistedMissing(.max),
        .purged(PurgeOutcome(session: "a", removed: 3)),
        .reloaded(ReloadOutcome(needingRestart: ["workers"])), .progress(9),
        .explanation(Self.explanation), .cookies([Self.cookie]),
        .cookieVerdicts([CookieVerdict(), .expired]), .credentials([Self.credential]),
        .credentialTrial(CredentialTrial(verdict: .refused, status: 401, scheme: "basic")),
        .keyRotated(KeyRotation(records: .max, keyFile: "/k")), .removed(.max),
        .failed(ControlFailure(.invalid, "line\nline")), .end,
        .failed(ControlFailure(.unavailable, "m")), .failed(ControlFailure(.inputOutput, "m")),
    ]

    static let explanation = ExplanationRecord(
        session: "default", method: "GET", url: "http://h/", key: "GET http://h/",
        verdict: .staleHit, isRevalidated: true, forward: nil,
        reason: ReasonRecord(reason: "fresh", source: "RFC 9111 §4.2"), beneath: nil,
        outcome: "partial 0-9",
        requestRules: [
            RuleRecord(speaker: "request", subject: "max-age=1", meaning: "m", source: "s")
        ],
        variants: [
            VariantRecord(
                status: 200, isSelected: true, isInvalidated: false, bodyBytes: .max,
                storedRanges: ["0-9"],
                varying: [
                    .init(
                        field: "cookie", result: "differs", stored: nil, presented: nil,
                        isHidden: true)
                ],
                freshness: FreshnessRecord(
                    lifetimeMilliseconds: 1, lifetimeSource: "é", lifetimeRule: "r",
                    dateMicroseconds: nil, requestTimeMicroseconds: .min,
                    responseTimeMicroseconds: .max, nowMicroseconds: 4, ageValueMilliseconds: 5,
                    apparentAgeMilliseconds: 6, responseDelayMilliseconds: 7,
                    correctedAgeValueMilliseconds: 8, correctedInitialAgeMilliseconds: 9,
                    residentTimeMilliseconds: 10, currentAgeMilliseconds: 11,
                    remainingMilliseconds: -12, isFresh: false),
                rules: [], validators: ["ETag: \"a\""], overrides: ["o"])
        ],
        remedies: ["a", "b"],
        history: [RecentRecord(timeMicroseconds: 1, method: "GET", status: 200, isHit: true)])

    @Test("are one line each, and come back as they were", arguments: Self.requests)
    func request(_ request: ControlRequest) throws {
        let line = try ControlCodec.line(request)
        #expect(line.filter { $0 == 0x0A }.count == 1 && line.last == 0x0A)
        #expect(try ControlCodec.message(ControlRequest.self, from: line) == request)
    }

    @Test(
        "A transfer's number has 16 digits for people, and is read from fewer and from capitals",
        arguments: [
            ("0000000000000000", 0, true), ("00000000000000ff", 255, true),
            ("ffffffffffffffff", .max, true), ("FF", 255, false), ("0", 0, false),
            ("", nil, false), ("+f", nil, false), ("-1", nil, false), ("0x1", nil, false),
            ("g", nil, false), ("１", nil, false), ("00000000000000000", nil, false),
        ] as [(String, UInt64?, Bool)])
    func transferID(_ text: String, _ id: UInt64?, _ isOurs: Bool) {
        #expect(TransferRecord.id(from: text) == id)
        if isOurs { #expect(id.map(TransferRecord.text(of:)) == text) }
    }

    @Test("likewise answers", arguments: Self.replies)
    func reply(_ reply: ControlReply) throws {
        let line = try ControlCodec.line(reply)
        #expect(line.filter { $0 == 0x0A }.count == 1 && line.last == 0x0A)
        #expect(try ControlCodec.message(ControlReply.self, from: line) == reply)
    }

    @Test(
        "tell of a failure in words that older commands know, and know those of later ones",
        arguments: [
            (#""code":"notFound""#, .notFound, true),
            (#""code":"failed","kind":"unavailable""#, .unavailable, true),
            (#""code":"failed","kind":"later""#, .failed, false),
            (#""code":"later""#, .failed, false),
        ] as [(String, ControlFailure.Code, Bool)])
    func failure(_ text: String, _ code: ControlFailure.Code, _ isOurs: Bool) throws {
        let line = #"{"larder":1,"message":{"failed":{"_0":{\#(text),"message":"m"}}}}"# + "\n"
        let reply = ControlReply.failed(ControlFailure(code, "m"))
        #expect(try ControlCodec.message(ControlReply.self, from: Array(line.utf8)) == reply)
        if isOurs {
            #expect(String(decoding: try ControlCodec.line(reply), as: UTF8.self) == line)
        }
    }

    @Test("have this form")
    func form() throws {
        let line = String(
            decoding: try ControlCodec.line(ControlRequest.purge(session: nil, .url("http://h/"))),
            as: UTF8.self)
        #expect(
            line
                == "{\"larder\":1,\"message\":{\"purge\":{\"_1\":{\"url\":{\"_0\":\"http://h/\"}}}}}\n"
        )
    }

    @Test(
        "Junk and other versions are told apart",
        arguments: [
            ("", ControlError.Code.malformed), ("{}", .malformed), ("[1]", .malformed),
            ("\u{0}", .malformed),
            ("{\"larder\":2,\"message\":{}}", .unknownVersion), ("{\"larder\":\"1\"}", .malformed),
            ("{\"larder\":1}", .malformed),
            ("{\"larder\":1,\"message\":{\"dance\":{}}}", .malformed),
            (String(repeating: "[", count: 100_000), .malformed),
        ])
    func junk(_ text: String, _ code: ControlError.Code) {
        #expect {
            try ControlCodec.message(ControlRequest.self, from: Array(text.utf8))
        } throws: { ($0 as? ControlError)?.code == code }
    }

    @Test("Lines are found however the bytes come", arguments: 1...9)
    func split(_ size: Int) throws {
        let bytes = Array("one\n\ntwo\nthree".utf8)
        var splitter = LineSplitter()
        var lines: [[UInt8]] = []
        var start = 0
        while start < bytes.count {
            let end = min(start + size, bytes.count)
            lines += try splitter.push(bytes[start..<end])
            start = end
        }
        #expect(lines.map { String(decoding: $0, as: UTF8.self) } == ["one", "", "two"])
    }

    @Test("A line without end is not collected")
    func endless() throws {
        var splitter = LineSplitter(longest: 8)
        _ = try splitter.push(Array("12345678".utf8))
        #expect(throws: ControlError.self) { try splitter.push([0x39]) }
    }

    @Test("No description of a message shows a secret")
    func secrets() {
        let secret = ControlSecret(Array("hunter2".utf8))
        var cookie = Self.cookie
        cookie.value = secret
        let requests: [ControlRequest] = [
            .cookies(session: "a", principal: nil, .put([cookie])),
            .credentials(session: "a", principal: nil, .put(Self.credential, secret: secret)),
        ]
        for request in requests {
            var shown = "\(request) \(String(reflecting: request))"
            dump(request, to: &shown)
            #expect(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"))
        }
    }
}
