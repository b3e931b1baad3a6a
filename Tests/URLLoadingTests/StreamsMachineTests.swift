import Foundation
import Testing

@testable import URLLoading

@Suite("What a stream task does next (§3.6)")
struct StreamsMachineTests {
    private func open() -> StreamMachine {
        var machine = StreamMachine()
        #expect(machine.opened().isEmpty)
        return machine
    }

    @Test("reads are served in order, from what came, and each gets what it asked for")
    func reads() {
        var machine = self.open()
        #expect(machine.enqueue(.read(minimum: 3, maximum: 4), number: 1).isEmpty)
        #expect(machine.enqueue(.read(minimum: 1, maximum: 9), number: 2).isEmpty)
        #expect(machine.received(Data("ab".utf8)).isEmpty)
        #expect(
            machine.received(Data("cdef".utf8)) == [
                .completeRead(1, Data("abcd".utf8), atEnd: false),
                .completeRead(2, Data("ef".utf8), atEnd: false),
            ])
        #expect(machine.enqueue(.read(minimum: 5, maximum: 5), number: 3).isEmpty)
        #expect(machine.received(Data("x".utf8)).isEmpty)
        #expect(machine.ended() == [.readClosed, .completeRead(3, Data("x".utf8), atEnd: true)])
        #expect(
            machine.enqueue(.read(minimum: 1, maximum: 1), number: 4)
                == [.completeRead(4, Data(), atEnd: true)])
    }

    @Test("writes go out one at a time, beside a read that waits")
    func writes() {
        var machine = self.open()
        #expect(machine.enqueue(.read(minimum: 1, maximum: 1), number: 1).isEmpty)
        #expect(machine.enqueue(.write(Data("a".utf8)), number: 2) == [.send(Data("a".utf8))])
        #expect(machine.enqueue(.write(Data("b".utf8)), number: 3).isEmpty)
        #expect(machine.sent() == [.completeWrite(2), .send(Data("b".utf8))])
        #expect(machine.enqueue(.closeWrite, number: 4).isEmpty)
        #expect(machine.sent() == [.completeWrite(3), .shutDownWriting, .writeClosed])
        #expect(
            machine.enqueue(.write(Data("c".utf8)), number: 5)
                == [.fail(5, .networkConnectionLost)])
    }

    @Test("what waits for TLS takes its turn when the time for that is up")
    func expiredBarrier() {
        var machine = self.open()
        let (a, b) = (Data("a".utf8), Data("b".utf8))
        #expect(machine.enqueue(.write(a), number: 1) == [.send(a)])
        #expect(machine.enqueue(.secure, number: 2).isEmpty)
        #expect(machine.enqueue(.closeWrite, number: 4).isEmpty)
        #expect(machine.enqueue(.closeRead, number: 5).isEmpty)
        #expect(machine.enqueue(.secure, number: 6).isEmpty)
        #expect(machine.enqueue(.write(b), number: 7).isEmpty)
        #expect(machine.expired(2) == [.fail(2, .timedOut), .readClosed])
        #expect(machine.expired(2).isEmpty)
        #expect(
            machine.sent() == [
                .completeWrite(1), .shutDownWriting, .writeClosed, .end(.secureConnectionFailed),
                .fail(7, .networkConnectionLost), .finish,
            ])
    }

    @Test("bytes that are read in small pieces come in order, however many wait")
    func pieces() {
        var machine = self.open()
        let sent = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        #expect(machine.received(Data(sent[..<100_000])).isEmpty)
        var got = Data()
        for number in 0..<200 {
            if number == 60 { #expect(machine.received(Data(sent[100_000...])).isEmpty) }
            let size = number * 10
            for action in machine.enqueue(.read(minimum: size, maximum: size), number: number) {
                guard case .completeRead(number, let data, atEnd: false) = action else { continue }
                #expect(data.count == size)
                got += data
            }
        }
        #expect(got == Data(sent[..<199_000]))
    }

    @Test(
        "what is asked before there is a connection is done when there is one, and none while paused"
    )
    func early() {
        var machine = StreamMachine()
        #expect(machine.enqueue(.write(Data("a".utf8)), number: 1).isEmpty)
        #expect(!machine.wantsBytes)
        machine.isPaused = true
        #expect(machine.opened().isEmpty)
        #expect(machine.resumed() == [.send(Data("a".utf8))])
        #expect(machine.wantsBytes)
    }

    @Test("no more is read ahead than the bound, or than a read wants")
    func bound() {
        var machine = self.open()
        _ = machine.received(Data(count: StreamMachine.readAhead))
        #expect(!machine.wantsBytes)
        _ = machine.enqueue(.read(minimum: 200_000, maximum: 200_000), number: 1)
        #expect(machine.wantsBytes)
    }

    @Test("no more is gathered than the limit, whatever a read wants; what has come is not lost")
    func gathering() {
        var machine = StreamMachine(gatherLimit: 100_000)
        _ = machine.opened()
        #expect(machine.enqueue(.read(minimum: .max, maximum: .max), number: 1).isEmpty)
        #expect(machine.received(Data(count: 99_999)).isEmpty && machine.wantsBytes)
        #expect(machine.received(Data("a".utf8)) == [.fail(1, .dataLengthExceedsMaximum)])
        #expect(!machine.wantsBytes)
        // The next one that wants too much does not wait, either.
        #expect(
            machine.enqueue(.read(minimum: 100_001, maximum: .max), number: 2)
                == [.fail(2, .dataLengthExceedsMaximum)])
        let whole = Data(count: 99_999) + Data("a".utf8)
        #expect(
            machine.enqueue(.read(minimum: 100_000, maximum: .max), number: 3)
                == [.completeRead(3, whole, atEnd: false)])
        // At the end there may be less than it wants.
        #expect(machine.enqueue(.read(minimum: .max, maximum: .max), number: 4).isEmpty)
        #expect(machine.received(Data("b".utf8)).isEmpty)
        #expect(
            machine.ended() == [.readClosed, .completeRead(4, Data("b".utf8), atEnd: true)])
    }

    @Test("TLS waits for what was asked before, and what is asked after it waits for it")
    func barrier() {
        var machine = self.open()
        #expect(machine.enqueue(.write(Data("a".utf8)), number: 1) == [.send(Data("a".utf8))])
        #expect(machine.enqueue(.read(minimum: 1, maximum: 1), number: 2).isEmpty)
        #expect(machine.enqueue(.secure, number: 3).isEmpty)
        #expect(machine.enqueue(.write(Data("b".utf8)), number: 4).isEmpty)
        #expect(machine.sent() == [.completeWrite(1)])
        #expect(
            machine.received(Data("x".utf8))
                == [.completeRead(2, Data("x".utf8), atEnd: false), .secure])
        #expect(machine.secured() == [.send(Data("b".utf8))])
    }

    @Test("bytes that came unprotected before TLS end the task (RFC 3207 §4.2)")
    func injected() {
        var machine = self.open()
        _ = machine.received(Data("x".utf8))
        #expect(machine.enqueue(.secure, number: 1) == [.end(.secureConnectionFailed)])
    }

    @Test("a read whose time is up leaves what came; a write that may be out in part ends the task")
    func timeouts() {
        var machine = self.open()
        _ = machine.enqueue(.read(minimum: 2, maximum: 2), number: 1)
        _ = machine.received(Data("a".utf8))
        #expect(machine.expired(1) == [.fail(1, .timedOut)])
        #expect(machine.expired(1).isEmpty)
        #expect(
            machine.enqueue(.read(minimum: 1, maximum: 2), number: 2)
                == [.completeRead(2, Data("a".utf8), atEnd: false)])
        _ = machine.enqueue(.write(Data("a".utf8)), number: 3)
        _ = machine.enqueue(.write(Data("b".utf8)), number: 4)
        #expect(machine.expired(4) == [.fail(4, .timedOut)])
        #expect(machine.expired(3) == [.end(.timedOut)])
    }

    @Test("both sides closed is the end; capture gives away what was read and not taken")
    func ends() {
        var machine = self.open()
        #expect(machine.enqueue(.closeRead, number: 1) == [.readClosed])
        #expect(
            machine.enqueue(.closeWrite, number: 2) == [.shutDownWriting, .writeClosed, .finish])
        var other = self.open()
        _ = other.received(Data("ab".utf8))
        #expect(other.enqueue(.capture, number: 1) == [.capture(Data("ab".utf8))])
        #expect(other.enqueue(.write(Data()), number: 2).isEmpty)
    }
}
