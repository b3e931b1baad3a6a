import Foundation
import Glibc
import Testing

@testable import LarderProcess

/// A cache's place that is no good, and how it comes to be so.
enum BadPlace: String, CaseIterable, Sendable {
    case underFile, isFile, notWritable, missingParent
}

@Suite("A cache that cannot cache is still a proxy", .timeLimit(.minutes(10)))
struct DiskTests {
    /// Plays with a cache directory named in the configuration.
    private func play(
        _ directory: @escaping (Home) throws -> String,
        _ body: (ProxyProcess, ScriptedOrigin, Home) async throws -> Void
    ) async throws {
        try await Scene.inTurn {
            let home = try Home()
            let path = try directory(home)
            try home.configure("sessions: {default: {cache: {directory: '\(path)', disk: 64 MiB}}}")
            let origin = try await ScriptedOrigin.answering { request in
                response(body: request.target + String(repeating: "x", count: 200_000))
            }
            let proxy = try await home.serve()
            do {
                try await body(proxy, origin, home)
            } catch {
                Issue.record("\(error); the proxy said: \(proxy.log)")
            }
            let end = try await proxy.stop()
            #expect(end.status == 0)
            await origin.stop()
        }
    }

    @Test(
        "A file that is not LMDB is moved aside, said once, and the proxy caches",
        arguments: ["junk", "truncated"])
    func notLMDB(_ kind: String) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let origin = try await ScriptedOrigin.answering { _ in response(body: "x") }
            let file = home.cache + "/cache.mdb"
            if kind == "junk" {
                try FileManager.default.createDirectory(
                    atPath: home.cache, withIntermediateDirectories: true)
                try Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }).write(
                    to: URL(fileURLWithPath: file))
            } else {
                let before = try await home.serve()
                _ = try await before.get(origin.url("/old"))
                _ = try await before.stop()
                guard unsafe truncate(file, 5_000) == 0 else {
                    throw TimedOut(description: "truncate")
                }
            }
            let proxy = try await home.serve()
            for _ in 0..<2 {
                let answer = try await proxy.get(origin.url("/a"))
                #expect(answer.text == "x")
            }
            let hit = try await proxy.getStored(origin.url("/a"))
            #expect(hit.text == "x")
            let end = try await proxy.stop()
            #expect(end.status == 0)
            #expect(end.errText.components(separatedBy: "cache file set aside").count == 2)
            let files = try FileManager.default.contentsOfDirectory(atPath: home.cache)
            #expect(files.contains("cache.mdb"))
            #expect(
                files.filter {
                    $0.hasPrefix("cache.mdb.") || $0.contains("aside") || $0.contains("bad")
                }.count == 1, "\(files)")
            let again = try await home.serve()
            let kept = try await again.get(origin.url("/a"))
            #expect(kept["Cache-Status"]?.contains("hit") == true)
            _ = try await again.stop()
            #expect(!again.log.contains("set aside"))
            await origin.stop()
        }
    }

    @Test(
        "A place that is no good is said once, and everything else goes on",
        arguments: BadPlace.allCases)
    func badPlace(_ place: BadPlace) async throws {
        let isRoot = geteuid() == 0
        try await self.play { home in
            let base = home.path + "/place"
            switch place {
            case .underFile, .isFile:
                try Data([1]).write(to: URL(fileURLWithPath: base))
                return place == .isFile ? base : base + "/below"
            case .notWritable:
                // The superuser may write anywhere but there.
                guard !isRoot else { return "/proc/larder-cache" }
                try FileManager.default.createDirectory(
                    atPath: base, withIntermediateDirectories: true)
                guard unsafe chmod(base, 0o500) == 0 else { throw TimedOut(description: "chmod") }
                return base + "/below"
            case .missingParent:
                return base + "/a/b/c"
            }
        } _: { proxy, origin, _ in
            let miss = try await proxy.get(origin.url("/a"))
            #expect(miss.status == 200)
            #expect(miss.body.count == 200_002)
            let hit = try await proxy.getStored(origin.url("/a"))
            #expect(hit.body.count == 200_002)
            let isSaid = proxy.log.components(separatedBy: "caching in memory only").count - 1
            #expect(isSaid == (place == .missingParent ? 0 : 1))
        }
    }

    @Test("On a full disk new responses take the place of old ones, and all stay whole")
    func fullDisk() async throws {
        try await SmallDisk.use("size=4m") { disk in
            try await self.play({ _ in disk + "/cache" }) { proxy, origin, home in
                for i in 0..<60 {
                    let answer = try await proxy.get(origin.url("/\(i)"))
                    #expect(answer.status == 200)
                    #expect(answer.text.hasPrefix("/\(i)x"))
                    #expect(answer.body.count == 200_001 + "\(i)".count)
                }
                let full = "nothing is stored on disk for now"
                #expect(proxy.log.components(separatedBy: full).count <= 2)
                // It would not, were memory alone to hold it.
                let listed = try await home.larder("cache", "list", "--tier", "disk", "--json")
                let urls = listed.lines.filter { $0.contains("\"url\"") }
                #expect(urls.count >= 5, "\(listed.outText) \(listed.errText)")
                #expect(urls.contains { $0.contains("/5") }, "\(listed.outText)")
                let last = try await proxy.getStored(origin.url("/59"))
                #expect(last.text.hasPrefix("/59x"))
            }
        }
    }

    @Test("A disk that is full already is said once, and the proxy forwards")
    func fullBefore() async throws {
        try await SmallDisk.use("size=1m") { disk in
            // The cache makes its directory, and then finds no room for a page.
            try FileManager.default.createDirectory(
                atPath: disk + "/cache", withIntermediateDirectories: false)
            try await SmallDisk.fill(disk, name: "filler")
            try await self.play({ _ in disk + "/cache" }) { proxy, origin, _ in
                let answer = try await proxy.get(origin.url("/a"))
                #expect(answer.body.count == 200_002)
                #expect(proxy.log.components(separatedBy: "caching in memory only").count == 2)
            }
        }
    }

    @Test("A read-only disk is said once, and the proxy forwards")
    func readOnlyDisk() async throws {
        try await SmallDisk.use("ro,size=4m") { disk in
            try await self.play({ _ in disk + "/cache" }) { proxy, origin, _ in
                let answer = try await proxy.get(origin.url("/a"))
                #expect(answer.body.count == 200_002)
                #expect(proxy.log.components(separatedBy: "caching in memory only").count == 2)
            }
        }
    }

    @Test("A purge on a read-only disk fails and says why, and what was stored there comes back")
    func purgeOnReadOnlyDisk() async throws {
        try await SmallDisk.use("size=16m") { disk in
            func remount(_ option: String) async throws {
                let end = try await Program(
                    "/bin/mount", ["-o", "remount,\(option)", disk], environment: [:]
                ).ended()
                #expect(end.status == 0, "\(end.errText)")
            }
            try await Scene.inTurn {
                let home = try Home()
                try home.configure(
                    "sessions: {default: {cache: {directory: '\(disk)/cache', disk: 8 MiB}}}")
                let origin = try await ScriptedOrigin.answering { response(body: $0.target) }
                let url = origin.url("/a")
                let first = try await home.serve()
                _ = try await first.get(url)
                _ = try await first.getStored(url)
                _ = try await first.stop()

                try await remount("ro")
                let second = try await home.serve()
                _ = try await second.get(url)
                _ = try await second.getStored(url)
                for _ in 0..<2 {
                    let purged = try await home.cache("purge", url)
                    #expect(purged.status == 74)
                    #expect(purged.out.isEmpty)
                    #expect(purged.errText.contains("cache.lock"), "\(purged.errText)")
                    #expect(purged.errText.contains("Read-only file system: what"))
                    #expect(purged.errText.contains("may come back at the next start; remount"))
                }
                let answer = try await second.get(url, "Cache-Control: only-if-cached")
                #expect(answer.status == 504)
                let said = "responses that were removed may come back at the next start"
                #expect(second.log.components(separatedBy: said).count == 2)
                _ = try await second.stop()
                let alone = try await home.cache("purge", url)
                #expect(alone.status == 77)
                #expect(alone.out.isEmpty)

                try await remount("rw")
                let third = try await home.serve()
                let kept = try await third.get(url)
                #expect(kept["Cache-Status"]?.contains("hit") == true)
                #expect(try await home.cache("purge", url).outText == "1\n")
                _ = try await third.stop()
                await origin.stop()
            }
        }
    }
}
