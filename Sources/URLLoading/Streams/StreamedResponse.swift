import Dispatch
import Foundation
import LarderHTTP
import NIOCore

/// The body of a response that a stream task reads (§4.3).
///
/// ```
/// begin ─▶ (take ─▶ ready)* ─▶ finish ─▶ what has been read ahead is read ─▶ finished
/// ```
///
/// There is no side that writes: the request is out as a whole, and the connection belongs to the
/// transfer. A piece counts as taken when there is room for the next, so that a program that does not
/// read slows the origin down. Everything that changes is confined to `queue`; unchecked for that
/// reason. It holds its owner from `begin` to `end`.
final class StreamedResponse: StreamChannel, BodyConsumer, @unchecked Sendable {
    private let queue: DispatchQueue
    private var machine = StreamMachine(writes: false)
    private var owner: (any StreamOwner)?
    private let timers: OperationTimers
    /// Wants to hear when there is room again.
    private var ready: (@Sendable (BodyConsumerError?) -> Void)?
    private var isOver = false

    init() {
        self.queue = DispatchQueue(label: "urlloading.streamed-response")
        self.timers = OperationTimers(on: self.queue)
    }

    // MARK: The task

    func begin(_ owner: any StreamOwner) {
        self.queue.async {
            guard !self.isOver else { return }
            self.owner = owner
            self.timers.begin()
            owner.writeClosed()
            self.perform(self.machine.opened())
        }
    }

    func enqueue(_ operation: StreamMachine.Operation, number: Int, timeout: Duration?) {
        self.queue.async {
            guard !self.isOver else { return }
            if let timeout {
                self.timers.limit(
                    number, to: timeout,
                    patience: { [weak self] in self?.owner?.patience(beyond: timeout) },
                    expired: { [weak self] in
                        guard let self, !self.isOver else { return }
                        self.perform(self.machine.expired(number))
                    })
            }
            self.perform(self.machine.enqueue(operation, number: number))
        }
    }

    func pause(if isSuspended: @escaping @Sendable () -> Bool) {
        self.queue.async {
            guard !self.isOver else { return }
            if isSuspended() {
                self.machine.isPaused = true
            } else {
                self.perform(self.machine.resumed())
            }
        }
    }

    func end() {
        self.queue.async {
            self.isOver = true
            self.machine.over()
            self.timers.cancelAll()
            self.owner = nil
            self.ready = nil
        }
    }

    // MARK: The body

    func take(_ piece: ByteBuffer, ready: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.queue.async {
            guard !self.isOver else { return }
            self.ready = ready
            self.perform(self.machine.received(Data(piece.readableBytesView)))
        }
    }

    /// The task ends when what is here has been read, not now: so nothing is said to be done.
    func finish(done: @escaping @Sendable (BodyConsumerError?) -> Void) {
        self.queue.async {
            guard !self.isOver else { return }
            self.perform(self.machine.ended())
        }
    }

    func stop() { self.end() }

    // MARK: What is to be done

    private func perform(_ actions: [StreamMachine.Action]) {
        for action in actions where !self.isOver { self.perform(action) }
        guard !self.isOver, self.machine.wantsBytes else { return }
        self.ready.take()?(nil)
    }

    private func perform(_ action: StreamMachine.Action) {
        switch action {
        case .completeRead(let number, let data, let atEnd):
            self.completed(number, data, atEnd: atEnd, nil)
        case .fail(let number, let code):
            self.completed(number, nil, atEnd: false, URLError(code))
        case .readClosed: self.owner?.readClosed()
        case .finish: self.owner?.finished()
        case .end(let code): self.owner?.failed(URLError(code))
        // The connection is the transfer's, which may carry others.
        case .secure, .capture: self.owner?.failed(URLError(.unsupportedURL))
        // It was closed from the beginning.
        case .completeWrite, .send, .shutDownWriting, .writeClosed: break
        }
    }

    private func completed(_ number: Int, _ data: Data?, atEnd: Bool, _ error: URLError?) {
        self.timers.cancel(number)
        self.owner?.completed(number, data, atEnd: atEnd, error)
    }
}
