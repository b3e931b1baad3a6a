import Foundation
import LarderHTTP
import NIOCore
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("The end of a body that nobody wants any more")
struct BodiesEndTests {
    /// Asks a file for two things while it is at work, so that they wait, and gives what it answers.
    private static func answers(
        _ ask: @escaping @Sendable (FileConsumer, Event<[String]>) -> Void
    ) async throws -> [String] {
        try await Scratch.with { scratch in
            let answers = Event<[String]>([])
            let kept = Event<FileConsumer?>(nil)
            let consumer = FileConsumer(in: scratch.url) { _, _, taken in
                let consumer = kept.value
                kept.change { $0 = nil }
                if let consumer { ask(consumer, answers) }
                taken()
            }
            kept.change { $0 = consumer }
            _ = await consumer.taking([1, 2, 3])
            try await answers.wait(for: "both answers") { $0.count == 2 }
            return answers.value
        }
    }

    @Test(
        "a file is left, and its end answered, whichever is asked for first (§3.5)",
        arguments: [true, false])
    func leftAtItsEnd(leavesFirst: Bool) async throws {
        let answers = try await Self.answers { consumer, answers in
            if leavesFirst { consumer.leaving(answers) }
            consumer.finish { error in
                answers.change { $0.append(error == nil ? "whole" : "refused") }
            }
            if !leavesFirst { consumer.leaving(answers) }
        }
        #expect(answers == ["refused", "left"])
    }

    @Test("a file that is left twice is left once, and both are answered")
    func leftTwice() async throws {
        let answers = try await Self.answers { consumer, answers in
            for _ in 0..<2 { consumer.leaving(answers) }
        }
        #expect(answers.sorted() == ["left", "nothing"])
    }

    /// When a pump is cancelled.
    enum Moment: CaseIterable { case end, failure, refusal, finish }

    @Test(
        "a pump that is cancelled while it hears of the end tells nobody of it",
        arguments: Moment.allCases)
    func cancelledAtItsEnd(_ moment: Moment) {
        let canceller = Event<BodyPump?>(nil)
        let consumer = NotingConsumer { event in
            if event == (moment == .finish ? "finish" : "take") { canceller.value?.cancel() }
        }
        let body = ScriptedEnd {
            switch moment {
            case .end:
                canceller.value?.cancel()
                return .end(trailers: Fields())
            case .failure:
                canceller.value?.cancel()
                return .failed(.cancelled)
            case .refusal: return .piece(ByteBuffer(string: "x"))
            case .finish: return .end(trailers: Fields())
            }
        }
        let pump = BodyPump(
            body, into: consumer, received: { _ in },
            ended: { _ in consumer.heard.change { $0.append("ended") } })
        canceller.change { $0 = pump }
        pump.start()
        switch moment {
        case .end, .failure: #expect(consumer.heard.value == ["stop"])
        case .refusal: #expect(consumer.heard.value == ["take", "stop"])
        case .finish: #expect(consumer.heard.value == ["finish", "stop"])
        }
        canceller.change { $0 = nil }
    }
}

extension FileConsumer {
    fileprivate func leaving(_ answers: Event<[String]>) {
        self.leave { part in answers.change { $0.append(part == nil ? "nothing" : "left") } }
    }
}

private final class ScriptedEnd: BodySource {
    private let step: @Sendable () -> BodyStep

    init(_ step: @escaping @Sendable () -> BodyStep) {
        self.step = step
    }

    func attach(wake: @escaping @Sendable () -> Void) {}
    func next() -> BodyStep { self.step() }
    func cancel() {}
}

/// Takes nothing, and finishes at once.
private final class NotingConsumer: BodyConsumer {
    let heard = Event<[String]>([])
    private let meanwhile: @Sendable (String) -> Void

    init(_ meanwhile: @escaping @Sendable (String) -> Void) {
        self.meanwhile = meanwhile
    }

    private func note(_ event: String) {
        self.heard.change { $0.append(event) }
        self.meanwhile(event)
    }

    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.note("take")
        ready(BodyConsumerError(error: URLError(.cannotWriteToFile)))
    }

    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.note("finish")
        done(nil)
    }

    func stop() { self.note("stop") }
}
