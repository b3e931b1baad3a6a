import Dispatch
import Foundation
@testable import LarderProcess
import Synchronization
import Testing
@testable import LarderTransfer
@testable import URLLoading

@Suite("Races of a task's end (§1.2, §3.1)")
struct CoreRaceTests {
    @Test("completion comes once, and last, whether cancelled, finished or invalidated first")
    func delegate() async throws {
        for _ in 0..<300 {
            let s = ScriptedSession()
            let delegate = try #require(s.delegate)
            let task = s.session.dataTask(with: try ScriptedSession.url())
            task.resume()
            let load = try await s.loaders.load()
            await Race.atOnce(
                { load.answer(200, [:], "one", "two") }, { task.cancel() },
                { s.session.finishTasksAndInvalidate() },
                {
                    task.suspend(); task.resume()
                })
            try await delegate.messages.wait(for: "the end") { $0.last == "invalid" }
            let messages = delegate.messages.value
            #expect(messages.filter { $0 == "complete" }.count == 1)
            #expect(messages.suffix(3) == ["metrics", "complete", "invalid"])
            #expect(delegate.wrongQueue.value == 0)
            #expect(task.state == .completed)
            await s.session.delegateQueue.settled()
            #expect(s.session.delegate == nil)
            #expect(task.session == nil && task.delegate == nil)
            let isWhole = delegate.data.value == Data("onetwo".utf8)
            #expect((delegate.errors.value[0] == nil) == isWhole || task.error != nil)
        }
    }

    @Test("a handler is called once, with data or an error")
    func handler() async throws {
        for _ in 0..<300 {
            let s = ScriptedSession(delegate: nil)
            let results = Event<[(Data?, (any Error)?)]>([])
            let task = s.session.dataTask(with: try ScriptedSession.url()) { data, _, error in
                results.change { $0.append((data, error)) }
            }
            await Race.atOnce(
                { task.resume() }, { task.cancel() },
                { s.loaders.loads.value.first?.answer(200, [:], "one") },
                { s.session.invalidateAndCancel() })
            for load in s.loaders.loads.value { load.answer(200, [:], "one") }
            try await results.wait(for: "the end") { !$0.isEmpty }
            let left = await s.session.allTasks
            #expect(left.isEmpty)
            #expect(results.value.count == 1)
            #expect((results.value[0].0 == nil) == (results.value[0].1 != nil))
        }
    }

    @Test(
        "a redirection that is answered while the task is cancelled begins nothing, or is cancelled"
    )
    func redirection() async throws {
        for _ in 0..<300 {
            let s = ScriptedSession()
            let delegate = try #require(s.delegate)
            let held = Event<[@Sendable () -> Void]>([])
            delegate.redirection.withLock {
                $0 = { request, answer in held.change { $0.append { answer(request) } } }
            }
            let task = s.session.dataTask(with: try ScriptedSession.url())
            task.resume()
            try await s.loaders.load().answer(302, ["Location": "/next", "Content-Length": "0"])
            try await held.wait(for: "the question") { $0.count == 1 }
            await Race.atOnce({ held.value[0]() }, { held.value[0]() }, { task.cancel() })
            try await delegate.completion()
            let loads = s.loaders.loads.value
            #expect(loads.count <= 2)
            if loads.count == 2 {
                try await loads[1].isCancelled.wait(for: "the second load's end") { $0 }
            }
            #expect(delegate.messages.value.suffix(2) == ["metrics", "complete"])
        }
    }

    @Test("tasks resumed while their session is invalidated complete, and let it end")
    func invalidation() async throws {
        for _ in 0..<200 {
            let s = ScriptedSession { $0.answer(200, [:], "one") }
            let delegate = try #require(s.delegate)
            let tasks = try (0..<4).map { _ in
                s.session.dataTask(with: try ScriptedSession.url())
            }
            await Race.atOnce(
                { tasks[0].resume() }, { tasks[1].resume() }, { tasks[2].resume() },
                {
                    tasks[3].resume(); tasks[3].cancel()
                },
                { s.session.finishTasksAndInvalidate() }, { s.session.invalidateAndCancel() })
            try await delegate.messages.wait(for: "the end") { $0.contains("invalid") }
            #expect(delegate.messages.value.filter { $0 == "invalid" }.count == 1)
            #expect(s.session.guarded.withLock { $0.tasks.isEmpty })
            // Those that came too late complete behind the session's end, which nobody hears.
            let completed = delegate.messages.value.filter { $0 == "complete" }.count
            #expect(completed <= tasks.count)
        }
    }

    @Test("an upload's or a download's waiting for a body that stops ends with cancel")
    func stalled() async throws {
        for _ in 0..<100 {
            let s = ScriptedSession()
            let delegate = try #require(s.delegate)
            let task = s.session.dataTask(with: try ScriptedSession.url())
            task.resume()
            let body = try await s.loaders.load().answer(200, [:], isWhole: false)
            await Race.atOnce({ body.push("one") }, { task.cancel() }, { body.end() })
            try await delegate.completion()
            #expect(task.state == .completed)
            #expect(delegate.messages.value.last == "complete")
        }
    }
}
