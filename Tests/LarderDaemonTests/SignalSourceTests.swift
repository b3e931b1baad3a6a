import Foundation
import Synchronization
import Testing

@testable import LarderDaemon

/// With a signal that does nothing by itself and that nobody else makes use of: signals are the whole
/// process's.
@Suite("Signals as a sequence", .serialized, .timeLimit(.minutes(1)))
struct SignalSourceTests {
    @Test("are heard by each who asked, on a thread that waits for them")
    func heard() async {
        let threads = Mutex<[String]>([])
        let first = SignalSource.signals([SIGURG]) { _ in
            let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
            threads.withLock { $0.append(name ?? "") }
        }
        let second = SignalSource.signals([SIGURG, SIGWINCH])
        var ones = first.makeAsyncIterator()
        var others = second.makeAsyncIterator()
        for _ in 0..<2 {
            #expect(kill(getpid(), SIGURG) == 0)
            let one = await ones.next()
            let other = await others.next()
            #expect(one == SIGURG)
            #expect(other == SIGURG)
        }
        let names = threads.withLock { $0 }
        #expect(names == ["larder-signals\n", "larder-signals\n"])
    }

    @Test("end with the task that reads them, and come to who asks later")
    func ended() async {
        let signals = SignalSource.signals([SIGURG])
        let reading = Task {
            for await _ in signals {}
        }
        reading.cancel()
        await reading.value
        #expect(kill(getpid(), SIGURG) == 0)
        let later = SignalSource.signals([SIGURG])
        var numbers = later.makeAsyncIterator()
        #expect(kill(getpid(), SIGURG) == 0)
        let number = await numbers.next()
        #expect(number == SIGURG)
    }
}
