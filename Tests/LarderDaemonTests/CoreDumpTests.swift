import Glibc
import LarderConfig
import Synchronization
import Testing

@testable import LarderDaemon

@Suite("Core dumps")
struct CoreDumpTests {
    private static let quiet = "credentials: { answer: false }"

    @Test(
        "are forbidden while a session that is in use may hold secrets",
        arguments: [
            // Credentials may be added while it runs.
            ("", true),
            ("core-dumps: true\n", false),
            ("sessions: { default: { \(quiet) } }\n", false),
            ("sessions: { default: { \(quiet), cookies: { mode: jar } } }\n", true),
            ("sessions: { default: { \(quiet) }, other: { cookies: { mode: jar } } }\n", false),
            (
                "sessions: { default: { \(quiet) }, other: { cookies: { mode: jar } } }\n"
                    + "routes: [ { clients: unix, session: other } ]\n",
                true
            ),
            (
                "sessions: { default: { \(quiet) } }\n"
                    + "injections: [ { hosts: [a], credential: c } ]\n",
                true
            ),
            (
                "sessions: { default: { \(quiet) } }\n"
                    + "injections: [ { sessions: ephemeral, hosts: [a], credential: c } ]\n",
                false
            ),
            (
                "sessions: { default: { \(quiet) } }\n"
                    + "parents: [ { via: 'http://p:1', credential: c } ]\n",
                true
            ),
            (
                "sessions: { default: { \(quiet) } }\n"
                    + "listeners: [ { address: 127.0.0.1:1, authentication: { token-file: /t } } ]\n",
                true
            ),
        ])
    func forbidden(_ text: String, _ expected: Bool) throws {
        let loaded = try Configuration.parse(
            text, file: "f", environment: ProcessEnvironment(["HOME": "/h"]))
        #expect(CoreDumps.mustForbid(loaded.settings) == expected)
    }

    @Test("a fault that must leave no dump leaves no backtrace with memory in it, either")
    func backtraces() async {
        await #expect(processExitsWith: .success) {
            for number in CoreDumps.faults {
                var action = sigaction()
                unsafe action.__sigaction_handler.sa_handler = { _ in }
                precondition(unsafe sigaction(number, &action, nil) == 0)
            }
            precondition(CoreDumps.settle(Settings()))
            for number in CoreDumps.faults {
                var action = sigaction()
                precondition(unsafe sigaction(number, nil, &action) == 0)
                precondition(unsafe action.__sigaction_handler.sa_handler == nil)
            }
        }
    }

    @Test("are forbidden by a reload that brings in secrets, and stay so")
    func reload() async {
        await #expect(processExitsWith: .success) {
            func load(_ text: String) throws -> LoadedSettings {
                try Configuration.parse(
                    "listeners: [ { address: '127.0.0.1:0', session: ephemeral } ]\n"
                        + "sessions: { ephemeral: { kind: ephemeral, \(CoreDumpTests.quiet) } }\n"
                        + text,
                    file: "f", environment: ProcessEnvironment(["HOME": "/nowhere"]))
            }
            let plain = try load("")
            let secret = try load("injections: [ { hosts: [a], credential: c } ]\n")
            let level = DaemonLog.Level(.critical)
            var options = RunningProxy.Options()
            options.hasControl = false
            let isFirst = Mutex(true)
            precondition(CoreDumps.settle(plain.settings) && CoreDumps.areAllowed)
            let proxy = try await RunningProxy.start(
                plain, options: options, log: quietLog(), level: level
            ) { () throws(ConfigurationError) in
                isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst ? secret : plain
                }
            }
            precondition(CoreDumps.areAllowed)
            try await proxy.reload()
            precondition(!CoreDumps.areAllowed)
            try await proxy.reload()
            precondition(!CoreDumps.areAllowed)
            await proxy.stop(within: .zero)
        }
    }

    @Test("prctl(2): the kernel makes none of a process that is not dumpable")
    func kernel() async {
        await #expect(processExitsWith: .success) {
            var settings = Settings()
            settings.dumpsCore = true
            let isLeftAlone = CoreDumps.settle(settings) && CoreDumps.areAllowed
            settings.dumpsCore = false
            let isForbidden = CoreDumps.settle(settings) && !CoreDumps.areAllowed
            precondition(isLeftAlone && isForbidden)
        }
    }
}
