import Foundation
import Synchronization
import Testing

@testable import LarderProcess

/// The proxies and the origin that all cases share.
///
/// Begins with the first case, ends when all have been played. Each case has a path of its own on
/// the one origin; the cases of one configuration share a proxy.
actor Laboratory {
    @TaskLocal static var current: Laboratory?

    private struct Bench: Sendable {
        let home: Home
        let proxy: ProxyProcess
    }

    /// Cases at work at a time.
    private static let turnstile = Turnstile(places: 8)

    private let trials = Trials()
    private var origin: Task<ScriptedOrigin, any Error>?
    private var benches: [String: Task<Bench, any Error>] = [:]
    private var report = Report()

    /// Plays a case, and tells the test runner what is otherwise than expected.
    func check(_ played: Case) async throws {
        await Self.turnstile.enter()
        let findings: [String]
        do {
            findings = try await self.play(played)
        } catch {
            await Self.turnstile.leave()
            throw error
        }
        await Self.turnstile.leave()
        self.report.add(played, findings)
        guard let reason = played.knownFailure else {
            for finding in findings { Issue.record("\(played.section): \(finding)") }
            return
        }
        if findings.isEmpty {
            Issue.record("passes, but is written down as failing: \(reason)")
        }
        for finding in findings {
            withKnownIssue(Comment(rawValue: reason)) { Issue.record("\(finding)") }
        }
    }

    private func play(_ played: Case) async throws -> [String] {
        let origin = try await self.beginOrigin()
        let bench: Bench
        do {
            bench = try await self.bench(played.settings)
        } catch {
            return ["the proxy does not start: \(error)"]
        }
        let trial = self.trials.begin(played, authority: origin.authority)
        return await trial.play(through: bench.proxy)
    }

    private func beginOrigin() async throws -> ScriptedOrigin {
        let trials = self.trials
        let task =
            self.origin
            ?? Task {
                try await ScriptedOrigin.start { connection in
                    while let request = try await connection.request() {
                        guard let trial = trials.trial(of: request.target),
                            try await trial.answer(request, on: connection.wire)
                        else { return }
                    }
                }
            }
        self.origin = task
        return try await task.value
    }

    private func bench(_ settings: String) async throws -> Bench {
        let task =
            self.benches[settings]
            ?? Task {
                let home = try Home()
                try home.configure(settings)
                let binary = ProcessInfo.processInfo.environment["LARDER_CONFORMANCE_BINARY"]
                let program = try home.start(
                    ["serve", "--config", home.configuration], path: binary ?? Program.larder)
                let proxy = ProxyProcess(program)
                try await proxy.announced()
                return Bench(home: home, proxy: proxy)
            }
        self.benches[settings] = task
        return try await task.value
    }

    /// Ends all proxies, each of which must end well, and writes the report.
    fileprivate func end() async throws {
        for task in self.benches.values {
            // One that did not begin has been reported by its cases.
            guard let bench = try? await task.value else { continue }
            let end = try await bench.proxy.stop()
            if end.status != 0 { Issue.record("the proxy ended badly: \(end.errText)") }
        }
        if let origin { await (try origin.value).stop() }
        try self.report.write()
    }
}

/// The cases that are being played, by the first segment of their paths.
private final class Trials: Sendable {
    private let all = Mutex<[Trial]>([])

    func begin(_ played: Case, authority: String) -> Trial {
        self.all.withLock { all in
            let trial = Trial(played, path: "/\(all.count)", authority: authority)
            all.append(trial)
            return trial
        }
    }

    func trial(of target: String) -> Trial? {
        let number = target.dropFirst().prefix { $0.isNumber }
        return self.all.withLock { all in
            guard let index = Int(number), all.indices.contains(index) else { return nil }
            return all[index]
        }
    }
}

/// Gives a suite its laboratory.
struct LaboratoryTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?,
        performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let laboratory = Laboratory()
        try await Laboratory.$current.withValue(laboratory) { try await function() }
        try await laboratory.end()
    }
}

extension SuiteTrait where Self == LaboratoryTrait {
    static var laboratory: Self { Self() }
}
