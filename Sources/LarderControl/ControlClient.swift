import Glibc

/// A command's end of the control socket: blocking, with a limit on every wait.
///
/// Not `Sendable`: one thread uses it.
package struct ControlClient: ~Copyable {
    private let descriptor: CInt
    private let patience: Duration
    private var splitter = LineSplitter()
    private var lines: [[UInt8]] = []

    /// Connects to the first of these sockets that is answered.
    ///
    /// - Parameter patience: how long the other side may say nothing.
    /// - Throws: `.notRunning` when none is answered, `.foreign` when whoever answers is not the one
    ///   that may hear what is asked.
    package init(
        paths: [String], patience: Duration = .seconds(10)
    ) throws(ControlError) {
        var failure = ControlError(.notRunning, "no proxy is running")
        for path in paths {
            do throws(ControlError) {
                let descriptor = try ControlSocket.connect(to: path, within: patience)
                do throws(ControlError) {
                    try ControlPeer.check(descriptor, at: path)
                } catch {
                    close(descriptor)
                    throw error
                }
                self.descriptor = descriptor
                self.patience = patience
                return
            } catch {
                // What says more than "not there" is what the user wants to read.
                if error.code != .notRunning { failure = error }
            }
        }
        throw failure
    }

    deinit { close(self.descriptor) }

    /// Sends a request and hands each line of the answer to `body`, the last one left out.
    ///
    /// - Parameter body: answers false to hear no more; the client is of no use after that.
    /// - Throws: what kept the answer from coming, or the `.failed` of the other side as `Refusal`.
    package mutating func send(
        _ request: ControlRequest, _ body: (ControlReply) throws -> Bool
    ) throws {
        var line = try ControlCodec.line(request)
        // It may hold a secret.
        defer { line.wipe() }
        try self.write(line)
        while true {
            let reply = try ControlCodec.message(ControlReply.self, from: try self.nextLine())
            if case .failed(let failure) = reply { throw ControlRefusal(failure: failure) }
            if reply.isLast { return }
            guard try body(reply) else { return }
        }
    }

    private func write(_ bytes: [UInt8]) throws(ControlError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            try self.wait(for: CShort(POLLOUT))
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(
                    self.descriptor, $0.baseAddress, $0.count,
                    CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT))
            }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR, errno != EAGAIN {
                throw .last("write to the control socket")
            }
        }
    }

    private mutating func nextLine() throws(ControlError) -> [UInt8] {
        while self.lines.isEmpty {
            try self.wait(for: CShort(POLLIN))
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = unsafe piece.withUnsafeMutableBytes {
                unsafe read(self.descriptor, $0.baseAddress, $0.count)
            }
            if count == 0 { throw ControlError(.closed, "the proxy closed the control socket") }
            if count < 0 {
                if errno == EINTR { continue }
                throw .last("read from the control socket")
            }
            // In reverse, so that lines are taken from the end.
            self.lines = try self.splitter.push(piece[..<count]).reversed()
        }
        return self.lines.removeLast()
    }

    /// Waits until the socket can be used, at most as long as our patience.
    private func wait(for events: CShort) throws(ControlError) {
        let deadline = ContinuousClock.now + self.patience
        while true {
            let left = deadline - ContinuousClock.now
            guard left > .zero else {
                throw ControlError(.timedOut, "the proxy did not answer in time")
            }
            let (seconds, attoseconds) = left.components
            let milliseconds = seconds.multipliedReportingOverflow(by: 1000)
            let limit =
                milliseconds.overflow
                ? CInt.max
                : CInt(
                    clamping: milliseconds.partialValue + attoseconds / 1_000_000_000_000_000 + 1)
            var entry = pollfd(fd: self.descriptor, events: events, revents: 0)
            let count = unsafe poll(&entry, 1, limit)
            if count > 0 { return }
            if count < 0, errno != EINTR { throw .last("wait for the control socket") }
        }
    }
}

/// What the other side would not do, and why.
package struct ControlRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    package var failure: ControlFailure

    package init(failure: ControlFailure) {
        self.failure = failure
    }

    package var description: String { self.failure.message }
}
