import Testing

@testable import LarderTransfer

@Suite("What is known of sockets")
struct SocketTableTests {
    private let table = SocketTable()

    private func counts() -> [Int] {
        [self.table.count, self.table.idle, self.table.others, self.table.classed]
    }

    private func watch(isIdle: Bool = false) -> SocketTable.Watch {
        SocketTable.Watch(events: 1, hasRead: true, isIdle: isIdle)
    }

    @Test("stays with each of several, in whatever order they are asked about")
    func several() {
        for socket: Int32 in 3...9 {
            self.table.note(
                socket, socket % 2 == 0 ? .answers : .others, isLoopback: socket > 6,
                identity: UInt64(socket) * 10)
            self.table.setTrafficClass(of: socket, socket == 5 ? 46 : nil)
            _ = self.table.setWatch(of: socket, self.watch(isIdle: socket == 8))
        }
        for socket: Int32 in [9, 3, 3, 8, 4, 9, 5, 7, 6] {
            let facts = self.table[socket]
            #expect(facts.takesAnswersAlone == (socket % 2 == 0))
            #expect(facts.mayBeWrittenTo == (socket % 2 == 1))
            #expect(facts.isLoopback == (socket > 6))
            #expect(facts.identity == UInt64(socket) * 10)
            #expect(facts.trafficClass == (socket == 5 ? 46 : nil))
            #expect(facts.watch?.isIdle == (socket == 8))
        }
        #expect(self.counts() == [7, 1, 4, 1])
        #expect(self.table.first { $1.watch?.isIdle == true } == 8)
        #expect(self.table.first { $1.trafficClass == 46 } == 5)
        for socket: Int32 in [5, 8, 3, 9, 4, 6, 7] { self.table.forget(socket) }
        #expect(self.counts() == [0, 0, 0, 0])
        #expect(self.table.first { _, _ in true } == nil)
    }

    @Test("nothing is remembered of one that was only asked about")
    func unknown() {
        for socket: Int32 in 3...9 { #expect(self.table[socket].identity == nil) }
        #expect(self.table.first { number, _ in number != 9 } == nil)
    }

    @Test("a number that comes back is counted once, for what it is now")
    func again() {
        self.table.note(3, .others, isLoopback: true, identity: 1)
        self.table.setTrafficClass(of: 3, 8)
        self.table.note(4, .answers, isLoopback: false, identity: nil)
        self.table.note(3, .answers, isLoopback: false, identity: 2)
        self.table.setTrafficClass(of: 3, nil)
        #expect(self.counts() == [1, 0, 0, 0])
        #expect(!self.table[3].isLoopback && self.table[3].takesAnswersAlone)
        _ = self.table.setWatch(of: 3, self.watch(isIdle: true))
        let known = self.table.setWatch(of: 3, self.watch(isIdle: true))
        #expect(known?.isIdle == true && self.table.idle == 1)
        _ = self.table.setWatch(of: 3, nil)
        #expect(self.counts() == [1, 0, 0, 0])
    }
}
