import Foundation
import Glibc
import Synchronization

@testable import LarderProcess

/// One case being played: what its clients got, and what its origin was asked.
final class Trial: Sendable {
    /// A request that reached the origin.
    struct Asked: Sendable {
        /// From 1; 0 where the request does not tell.
        var step: Int
        var request: Message
    }

    /// What a client got.
    struct Got: Sendable {
        var interims: [Message] = []
        var response: Message
        var isCut = false
    }

    /// The field by which the origin knows the step.
    static let stepField = "Conformance-Step"
    /// How long a request is repeated that does not come out as expected.
    private static let patience = Duration.seconds(20)

    let played: Case
    let words: Words
    let asked = Event<[Asked]>([])
    /// Set when all clients of a shared answer have its first bytes.
    let allHaveBegun = Event(false)

    init(_ played: Case, path: String, authority: String) {
        self.played = played
        self.words = Words(path: path, authority: authority, start: time(nil))
    }

    // MARK: The clients' side

    /// Plays all steps.
    ///
    /// - Returns: what came out otherwise than expected; empty where all is well.
    func play(through proxy: ProxyProcess) async -> [String] {
        for number in 1...self.played.steps.count {
            var wrong = await self.play(number, proxy)
            let end = ContinuousClock.now + Self.patience
            let step = self.played.steps[number - 1]
            while step.isRepeated, !wrong.isEmpty, ContinuousClock.now < end {
                wrong = await self.play(number, proxy)
            }
            while self.asked.value.count < step.leadsToRequests, wrong.isEmpty {
                _ = await self.play(number, proxy)
                if ContinuousClock.now > end { wrong = ["the origin was not asked"] }
            }
            if !wrong.isEmpty { return wrong.map { "step \(number): \($0)" } }
        }
        return []
    }

    private func play(_ number: Int, _ proxy: ProxyProcess) async -> [String] {
        let step = self.played.steps[number - 1]
        let before = self.asked.value.count
        do {
            if step.clients > 1 { return try await self.playShared(number, before, proxy) }
            let client = try await proxy.connect()
            try await client.send(self.request(step, number))
            let got = try await Self.answer(on: client, to: step.method)
            try await client.close()
            return Judge(trial: self, number: number, before: before, got: got).findings()
        } catch {
            return ["no answer: \(error)"]
        }
    }

    /// One client asks, and when its answer has begun, the others do.
    private func playShared(
        _ number: Int, _ before: Int, _ proxy: ProxyProcess
    ) async throws -> [String] {
        let step = self.played.steps[number - 1]
        var clients: [(Wire, Message)] = []
        for _ in 0..<step.clients {
            let client = try await proxy.connect()
            try await client.send(self.request(step, number))
            clients.append((client, try await client.head()))
        }
        self.allHaveBegun.change { $0 = true }
        var findings: [String] = []
        for (client, head) in clients {
            var response = head
            (response.body, response.trailers) = try await client.chunks()
            try await client.close()
            let got = Got(response: response)
            findings += Judge(trial: self, number: number, before: before, got: got).findings()
        }
        return findings
    }

    private func request(_ step: Step, _ number: Int) -> String {
        let url = self.words.base + self.words.said(step.path)
        let fields = step.fields.map(self.words.said) + ["\(Self.stepField): \(number)"]
        let head = ProxyProcess.request(step.method, url, fields)
        return step.content.map { head.with($0) } ?? head
    }

    private static func answer(on client: Wire, to method: String) async throws -> Got {
        var interims: [Message] = []
        while true {
            var head = try await client.head()
            if (100..<200).contains(head.status), head.status != 101 {
                interims.append(head)
                continue
            }
            do {
                try await client.content(of: &head, to: method)
                return Got(interims: interims, response: head)
            } catch {
                return Got(interims: interims, response: head, isCut: true)
            }
        }
    }

    /// What a step asked of the origin.
    ///
    /// - Parameter before: how many requests had come when its client sent its own.
    func asked(by step: Int, after before: Int) -> [Message] {
        self.asked.value.dropFirst(before).filter { $0.step == step }.map(\.request)
    }

    // MARK: The origin's side

    /// Answers a request that came to the origin.
    ///
    /// - Returns: false to close the connection.
    func answer(_ request: Message, on wire: Wire) async throws -> Bool {
        let number = request[Self.stepField].flatMap { Int($0) } ?? 0
        guard (1...self.played.steps.count).contains(number) else {
            try await wire.send("HTTP/1.1 500 Unknown Step\r\nContent-Length: 0\r\n\r\n")
            return true
        }
        let step = self.played.steps[number - 1]
        let answer = step.answer
        self.asked.change { $0.append(Asked(step: number, request: request)) }
        if answer.end == .refused { return false }
        let isNotModified = answer.notModifiedIf.map { self.has(request, $0) } ?? false
        let content = self.words.said(answer.content(ofStep: number))
        let head = answer.head(content, isNotModified: isNotModified, words: self.words)
        try await wire.send(answer.interimText(self.words) + head.text)
        let isBodyless = isNotModified || [204, 304].contains(answer.code)
        if request.method == "HEAD" || isBodyless { return true }
        if case .brokenOff(let count) = answer.end {
            try await wire.send(String(content.prefix(count)))
            return false
        }
        guard head.chunks else {
            try await wire.send(content)
            return true
        }
        if step.clients > 1 {
            try await wire.send(Answer.chunk(String(content.prefix(1))))
            try await self.allHaveBegun.wait(for: "all clients to begin") { $0 }
            try await wire.send(Answer.chunk(String(content.dropFirst(1))))
        } else {
            try await wire.send(Answer.chunk(content))
        }
        try await wire.send(answer.lastChunk(self.words))
        return true
    }

    /// Whether a message has a field with this value; of If-None-Match, among others.
    func has(_ message: Message, _ field: String) -> Bool {
        let (name, value) = self.parts(field)
        guard message.has(name) else { return false }
        let list = message.list(name)
        if list == value { return true }
        return name == "If-None-Match" && list.components(separatedBy: ", ").contains(value)
    }

    /// Name and value of `Name: value`, with its words said.
    func parts(_ field: String) -> (name: String, value: String) {
        let said = self.words.said(field)
        let name = said.prefix { $0 != ":" }
        let value = said.dropFirst(name.count + 1)
        return (String(name), String(value.drop { $0 == " " }))
    }
}
