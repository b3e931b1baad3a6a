import Glibc
import LarderCookies
import LarderHTTP
import Synchronization
import Testing

@testable import LarderState

@Suite("A process that keeps state and is killed", .timeLimit(.minutes(10)))
struct KillTests {
    /// Applies batches until it is killed from beside, and notes each that `apply` returned for.
    private static func writeUntilKilled(_ place: String, after batches: Int) async {
        let done = Count()
        let journal = unsafe open("\(place)/journal", O_WRONLY | O_CREAT | O_APPEND, 0o600)
        guard journal >= 0,
            let state = try? StateFile.open(
                StateConfiguration(directory: "\(place)/work", key: .file("\(place)/work.key")),
                now: Timestamp(seconds: 1_700_000_000), report: { _ in })
        else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                // Whatever the other is at by then: it is in the middle of something.
                while done.value < batches { await Task.yield() }
                for _ in 0..<batches % 7 { await Task.yield() }
                _ = kill(getpid(), SIGKILL)
            }
            group.addTask {
                for batch in 0... {
                    let changes = (0..<3).map {
                        CookieChange.stored(cookie("b\(batch)-\($0)", "\(batch)"))
                    }
                    guard (try? await state.cookies(of: "").apply(changes)) != nil else { return }
                    let line = Array("\(batch)\n".utf8)
                    guard unsafe write(journal, line, line.count) == line.count else { return }
                    done.note(batch + 1)
                }
            }
        }
    }

    @Test("has kept all that it was told is kept, whole batches each")
    func kills() async throws {
        let place = TemporaryDirectory()
        for round in 1...6 {
            let path = place.path
            let batches = round * 4
            _ = unsafe unlink("\(path)/journal")
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [path = path as String, batches = batches as Int] in
                await Self.writeUntilKilled(path, after: batches)
            }
            let told = try readFile("\(path)/journal").count { $0 == UInt8(ascii: "\n") }
            #expect(told >= batches)
            let events = Events()
            let state = try place.open(events)
            let cookies = try await state.cookies(of: "").load()
            #expect(events.all.isEmpty)
            let counts = cookies.reduce(into: [String: Int]()) {
                $0[String(decoding: $1.value, as: UTF8.self), default: 0] += 1
            }
            for batch in 0..<told { #expect(counts["\(batch)"] == 3) }
            #expect(counts.values.allSatisfy { $0 == 3 })
            await state.close()
        }
    }
}

/// A number that one thread sets and another reads.
private final class Count: Sendable {
    private let number = Atomic(0)

    var value: Int { self.number.load(ordering: .acquiring) }

    func note(_ number: Int) { self.number.store(number, ordering: .releasing) }
}
