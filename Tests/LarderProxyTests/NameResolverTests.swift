import Dispatch
import Foundation
import NIOCore
import Synchronization
import Testing

@testable import LarderProxy

/// Look-ups that take until the test lets them end; all names lead to 127.0.0.1.
final class HeldNames: Sendable {
    let asked = Event<[String]>([])
    private let gate = DispatchSemaphore(value: 0)
    private let result: NameResolver.Addresses

    init(_ result: NameResolver.Addresses? = nil) {
        self.result =
            result
            ?? Result { try [SocketAddress(ipAddress: "127.0.0.1", port: 0)] }
            .mapError { _ in .notFound }
    }

    func resolver(threads: Int = 64, queued: Int = 1_024) -> NameResolver {
        NameResolver(NameQueue.Limits(threads: threads, queued: queued)) { name in
            self.asked.change { $0.append(name) }
            self.gate.wait()
            return self.result
        }
    }

    func release(_ count: Int) { for _ in 0..<count { self.gate.signal() } }
}

@Suite("The look-up of names")
struct NameResolverTests {
    /// What whoever asked got, in the order in which it came.
    private let answers = Event<[String]>([])

    @discardableResult
    private func ask(_ resolver: NameResolver, _ name: String) -> NameResolver.Waiting {
        let answers = self.answers
        return resolver.resolve(name, for: .v4(1)) { result in
            switch result {
            case .success: answers.change { $0.append("\(name): found") }
            case .failure(let error): answers.change { $0.append("\(name): \(error)") }
            }
        }
    }

    @Test("is done on a thread with a name, on which nobody's signals end")
    func threads() async throws {
        let seen = Event<String>("")
        let resolver = NameResolver { _ in
            let status = try? String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)
            seen.change { $0 = status ?? "" }
            return .failure(.notFound)
        }
        self.ask(resolver, "a")
        try await self.answers.wait(for: "the answer") { !$0.isEmpty }
        let lines = seen.value.split(separator: "\n")
        #expect(lines.first == "Name:\tlarder-names")
        let line = try #require(lines.first { $0.hasPrefix("SigBlk:\t") })
        let mask = try #require(UInt64(line.dropFirst(8), radix: 16))
        #expect(mask & 1 << UInt64(SIGTERM - 1) != 0)
        #expect(mask & 1 << UInt64(SIGBUS - 1) == 0)
    }

    @Test("is one for all who ask at the same time, and another one for who asks later")
    func once() async throws {
        let names = HeldNames()
        let resolver = names.resolver()
        for _ in 0..<3 { self.ask(resolver, "a") }
        try await names.asked.wait(for: "the look-up") { $0 == ["a"] }
        names.release(1)
        try await self.answers.wait(for: "the answers") { $0.count == 3 }
        self.ask(resolver, "a")
        try await names.asked.wait(for: "another look-up") { $0 == ["a", "a"] }
        names.release(1)
        try await self.answers.wait(for: "its answer") { $0.count == 4 }
        #expect(resolver.waiting == 0)
    }

    @Test("stands in nobody's way, as far as there are threads; then names wait, so many of them")
    func bounds() async throws {
        let names = HeldNames()
        let resolver = names.resolver(threads: 2, queued: 2)
        for name in ["a", "b", "c", "d"] { self.ask(resolver, name) }
        try await names.asked.wait(for: "two look-ups") { Set($0) == ["a", "b"] }
        self.ask(resolver, "e")
        #expect(self.answers.value == ["e: exhausted"])
        // Whoever asks for what is asked for already takes no place.
        self.ask(resolver, "a")
        names.release(4)
        try await self.answers.wait(for: "all answers") { $0.count == 6 }
        #expect(Set(names.asked.value) == ["a", "b", "c", "d"])
    }

    @Test("is not begun for who has gone, and what was begun is of use to the next")
    func cancelled() async throws {
        let names = HeldNames()
        let resolver = names.resolver(threads: 1, queued: 1)
        let first = self.ask(resolver, "a")
        try await names.asked.wait(for: "the look-up") { $0 == ["a"] }
        self.ask(resolver, "b").cancel()
        first.cancel()
        #expect(resolver.waiting == 0)
        self.ask(resolver, "c")
        self.ask(resolver, "a")
        names.release(2)
        try await self.answers.wait(for: "the answers") { $0.count == 2 }
        #expect(self.answers.value == ["a: found", "c: found"])
        #expect(names.asked.value == ["a", "c"])
    }

    @Test("asks nobody for localhost and what lies below it (RFC 6761 §6.3)")
    func local() throws {
        let resolver = HeldNames().resolver(threads: 0, queued: 0)
        for name in ["localhost", "LocalHost.", "a.b.localhost"] {
            self.ask(resolver, name)
            #expect(self.answers.value.last == "\(name): found")
            let addresses = try #require(NameResolver.local(name))
            #expect(addresses.allSatisfy { IPAddress($0)?.isLoopback == true })
        }
        for name in ["localhost.example", "alocalhost", ".", ""] {
            #expect(NameResolver.local(name) == nil)
        }
    }

    @Test("asks the system")
    func system() throws {
        let found = try NameResolver.system("localhost").get()
        #expect(!found.isEmpty)
        #expect(found.allSatisfy { IPAddress($0)?.isLoopback == true })
        #expect(NameResolver.system("a..b") == .failure(.notFound))
    }
}
