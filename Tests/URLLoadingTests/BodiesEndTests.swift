import Foundation
import LarderHTTP
import NIOCore
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("The end of a body that nobody wants any more")
struct BodiesEndTests {
    @Test(
        "a file is left, and its end answered, whichever is asked for first (§3.5)",
        arguments: [true, false])
    func leftAtItsEnd(leavesFirst: Bool) async throws {
        try await Scratch.with { scratch in
            let answers = Event<[String]>([])
            let kept = Event<FileConsumer?>(nil)
            // Called while the file is at work: what is asked for then waits.
            let consumer = FileConsumer(in: scratch.url) { _, _, taken in
                let consumer = kept.value
                kept.change { $0 = nil }
                if leavesFirst { consumer?.leaving(answers) }
                consumer?.finish { error in
                    answers.change { $0.append(error == nil ? "whole" : "refused") }
                }
                if !leavesFirst { consumer?.leaving(answers) }
                taken()
            }
            kept.change { $0 = consumer }
            _ = await consumer.taking([1, 2, 3])
            try await answers.wait(for: "both answers") { $0.count == 2 }
            #expect(answers.value == ["refused", "left"])
        }
    }

    @Test("a pump that is cancelled while it hears of the end does not tell its consumer of it")
    func cancelledAtItsEnd() {
        let body = CancellingBody()
        let consumer = NotingConsumer()
        let pump = BodyPump(
            body, into: consumer, received: { _ in },
            ended: { _ in consumer.heard.change { $0.append("ended") } })
        body.pump.change { $0 = pump }
        pump.start()
        #expect(consumer.heard.value == ["stop"])
        body.pump.change { $0 = nil }
    }
}

extension FileConsumer {
    fileprivate func leaving(_ answers: Event<[String]>) {
        self.leave { part in answers.change { $0.append(part == nil ? "nothing" : "left") } }
    }
}

/// Ends while somebody cancels its pump.
private final class CancellingBody: BodySource {
    let pump = Event<BodyPump?>(nil)

    func attach(wake: @escaping @Sendable () -> Void) {}

    func next() -> BodyStep {
        self.pump.value?.cancel()
        return .end(trailers: Fields())
    }

    func cancel() {}
}

private final class NotingConsumer: BodyConsumer {
    let heard = Event<[String]>([])

    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.heard.change { $0.append("take") }
        ready(nil)
    }

    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.heard.change { $0.append("finish") }
        done(nil)
    }

    func stop() { self.heard.change { $0.append("stop") } }
}
