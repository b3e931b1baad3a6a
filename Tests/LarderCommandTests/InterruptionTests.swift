import Glibc
import Synchronization
import Testing

@testable import larder

@Suite("A command that is interrupted", .timeLimit(.minutes(10)))
struct InterruptionTests {
    @Test("dies by the signal, at once", arguments: [SIGINT, SIGTERM, SIGHUP])
    func atOnce(_ number: CInt) async {
        await #expect(processExitsWith: .signal(number)) { [number] in
            Interruption.listen()
            for number in [SIGINT, SIGTERM, SIGHUP] { Interruption.unblock(number) }
            raise(number)
            exit(3)
        }
    }

    @Test("ends what it has begun with the cache's file first")
    func held() async throws {
        let result = await #expect(
            processExitsWith: .signal(SIGINT), observing: [\.standardOutputContent]
        ) {
            Interruption.listen()
            for number in [SIGINT, SIGTERM, SIGHUP] { Interruption.unblock(number) }
            Interruption.held {
                raise(SIGINT)
                _ = unsafe write(STDOUT_FILENO, "ended", 5)
            }
            exit(3)
        }
        let said = String(decoding: result?.standardOutputContent ?? [], as: UTF8.self)
        #expect(said.contains("ended"))
    }

    @Test("does not wait for a second signal")
    func twice() async {
        await #expect(processExitsWith: .signal(SIGINT)) {
            Interruption.listen()
            for number in [SIGINT, SIGTERM, SIGHUP] { Interruption.unblock(number) }
            Interruption.held {
                raise(SIGINT)
                raise(SIGINT)
                exit(3)
            }
        }
    }

    @Test("leaves the terminal's line as it was")
    func line() async throws {
        let result = await #expect(
            processExitsWith: .signal(SIGINT), observing: [\.standardErrorContent]
        ) {
            Interruption.listen()
            for number in [SIGINT, SIGTERM, SIGHUP] { Interruption.unblock(number) }
            Interruption.hasLine.store(true, ordering: .sequentiallyConsistent)
            raise(SIGINT)
        }
        let said = result?.standardErrorContent ?? []
        #expect(said.suffix(4) == Array(ProgressLine.erasure.utf8)[...])
    }

    @Test("goes on where the signal was ignored before, as by nohup(1)")
    func ignored() async {
        await #expect(processExitsWith: .exitCode(5)) {
            _ = signal(SIGHUP, SIG_IGN)
            Interruption.listen()
            for number in [SIGINT, SIGTERM, SIGHUP] { Interruption.unblock(number) }
            raise(SIGHUP)
            exit(5)
        }
    }
}
