import Foundation
import Glibc
import Testing

@testable import LarderProcess

@Suite("The daemon's life", .timeLimit(.minutes(10)))
struct DaemonTests {
    @Test("A port in use ends the start with the reason and status 69")
    func portInUse() async throws {
        try await Scene.inTurn {
            let taken = try await ScriptedOrigin.answering { _ in "" }
            let home = try Home()
            try home.configure("listeners: [{address: '\(taken.authority)'}]")
            let end = try await home.run("serve", "--config", home.configuration)
            #expect(end.status == 69)
            #expect(
                end.errText.contains(
                    "larder: cannot listen on \(taken.authority): another program listens there; "))
            #expect(end.errText.split(separator: "\n").count == 1)
            await taken.stop()
        }
    }

    @Test("An unknown setting ends the start with file, line, column, nearest name and status 78")
    func unknownSetting() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("timeouts:\n  conect: 3s\nlimits:\n  head: 1 B")
            let end = try await home.run("serve", "--config", home.configuration)
            #expect(end.status == 78)
            #expect(end.out.isEmpty)
            #expect(end.errText.contains("larder: \(home.configuration):3:3: "))
            #expect(end.errText.contains("\"connect\""))
            #expect(end.errText.contains("larder: \(home.configuration):5:9: "))
        }
    }

    @Test(
        "SIGHUP puts new access rules into force and drops no connection; a broken file changes nothing"
    )
    func reload() async throws {
        let deny = "access: [{action: deny}]"
        let isOpen = Event(false)
        try await Scene.play { request in
            if request.target == "/slow" { try await isOpen.wait(for: "the barrier") { $0 } }
            return response(body: request.target, cache: nil)
        } _: { scene in
            let kept = try await scene.proxy.connect()
            try await kept.send(scene.request("GET", "/slow"))
            try await scene.origin.requests.wait(for: "the request") { $0.count == 1 }
            try scene.home.configure(deny)
            scene.proxy.program.signal(SIGHUP)
            try await scene.proxy.program.said("configuration reloaded")
            let denied = try await scene.get("/a")
            #expect(denied.status == 403)
            try scene.home.configure("acces: []")
            scene.proxy.program.signal(SIGHUP)
            try await scene.proxy.program.said("configuration not reloaded")
            let still = try await scene.get("/a")
            #expect(still.status == 403)
            try scene.home.configure("")
            scene.proxy.program.signal(SIGHUP)
            // The first connection lives, and is judged by the rules of the moment.
            isOpen.change { $0 = true }
            let answer = try await kept.message(to: "GET")
            #expect(answer.text == "/slow")
            #expect(scene.origin.connections.value == 1)
        }
    }

    @Test("A reload bounds each client's connections; the log says that one more was closed")
    func connectionsPerClient() async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let proxy = try await home.serve()
            let held = try await proxy.connect()
            try home.configure("limits: {connections-per-client: 1}")
            proxy.program.signal(SIGHUP)
            let said = try await proxy.program.said("configuration reloaded")
            #expect(!said.contains("waiting-for-restart"))
            let further = try await proxy.connect()
            #expect(try await further.readAll().isEmpty)
            try await proxy.program.said("a client has as many connections as it may")
            try await held.close()
            #expect(try await proxy.stop().status == 0)
        }
    }

    @Test("larder reload says what waits for a restart, and what keeps it from reloading")
    func reloadCommand() async throws {
        try await Scene.play(answer: { _ in response(body: "x") }) { scene in
            let home = scene.home
            let log = "\nlog: {access: {format: json, to: stdout}}"
            let plain = try await home.run("reload", "--config", home.configuration)
            #expect(plain.status == 0)
            #expect(plain.lines == ["configuration reloaded"])
            try home.configure("limits: {connections: 77}\naccess: []" + log)
            let waiting = try await home.run("reload", "--config", home.configuration)
            #expect(waiting.status == 0)
            #expect(waiting.lines.last == "  limits.connections")
            #expect(try await scene.get("/a").status == 403)
            try home.configure("access: [{}]\nacess: []" + log)
            let refused = try await home.run("reload", "--config", home.configuration)
            #expect(refused.status == 78)
            #expect(refused.errText.contains("acess"))
            #expect(try await scene.get("/a").status == 403)
        }
    }

    @Test("larder fetches lists what is on its way")
    func fetches() async throws {
        let isOpen = Event(false)
        try await Scene.scripted { connection in
            _ = try await connection.request()
            try await connection.send(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n12345")
            try await isOpen.wait(for: "the listing") { $0 }
            try await connection.send("67890")
        } _: { scene in
            let client = try await scene.proxy.connect()
            try await client.send(scene.request("GET", "/slow"))
            _ = try await client.read(through: "12345")
            let home = scene.home
            let list = try await home.run("fetches", "--config", home.configuration)
            #expect(list.status == 0)
            #expect(list.lines.first?.hasPrefix("URL") == true)
            #expect(list.lines.last?.hasPrefix(scene.origin.url("/slow")) == true)
            let json = try await home.run("fetches", "--json", "--config", home.configuration)
            #expect(
                json.lines == [
                    "{\"bytesReceived\":5,\"clients\":1,\"session\":\"default\",\"url\":\""
                        + scene.origin.url("/slow") + "\"}"
                ])
            isOpen.change { $0 = true }
            _ = try await client.read(through: "67890")
        }
        let home = try Home()
        try home.configure("")
        #expect(try await home.run("fetches", "--config", home.configuration).status == 69)
        #expect(try await home.run("reload", "--config", home.configuration).status == 69)
    }

    @Test("larder transfers lists nothing where no session keeps any, and cancels nothing")
    func transfers() async throws {
        try await Scene.play(answer: { _ in response(body: "x") }) { scene in
            let home = scene.home
            let file = home.configuration
            let list = try await home.run("transfers", "--config", file)
            #expect(list.status == 0)
            #expect(list.lines.isEmpty)
            let json = try await home.run(
                "transfers", "list", "--json", "--session", "default", "--config", file)
            #expect(json.status == 0)
            #expect(json.lines.isEmpty)
            let all = try await home.run("transfers", "cancel", "--all", "--config", file)
            #expect(all.status == 0)
            #expect(all.lines == ["0"])
            let one = try await home.run("transfers", "cancel", "ff", "--config", file)
            #expect(one.status == 1)
            #expect(one.lines.isEmpty)
            #expect(one.errText.hasPrefix("larder: there is no transfer 00000000000000ff; "))
            let other = try await home.run("transfers", "--session", "defualt", "--config", file)
            #expect(other.status == 64)
        }
        let home = try Home()
        try home.configure("")
        let none = try await home.run("transfers", "--config", home.configuration)
        #expect(none.status == 69)
        #expect(none.errText.hasPrefix("larder: no proxy is running, and only a running one"))
    }

    @Test("Commands find the proxy also when links in --config have come to lead elsewhere")
    func swappedLink() async throws {
        try await Scene.inTurn {
            let (home, files) = (try Home(), FileManager.default)
            let listener = "listeners: [{address: '127.0.0.1:0'}]\n"
            let closed = listener + "access: [{action: deny}]\n"
            for (name, settings) in ["v1": listener, "v2": closed] {
                try files.createDirectory(
                    atPath: home.path + "/" + name, withIntermediateDirectories: false)
                try home.write(settings, to: name + "/larder.yaml")
            }
            // As Kubernetes has a ConfigMap's files.
            let (data, next) = (home.path + "/..data", home.path + "/..data_tmp")
            try files.createSymbolicLink(atPath: data, withDestinationPath: "v1")
            try files.createSymbolicLink(
                atPath: home.configuration, withDestinationPath: "..data/larder.yaml")
            func sockets() throws -> [String] {
                try files.contentsOfDirectory(atPath: home.path + "/run/larder")
                    .filter { $0.hasPrefix("control-") }
            }
            let proxy = try await home.serve()
            #expect(try sockets().count == 2)
            let first = home.path + "/v1/larder.yaml"
            for file in [home.configuration, first] {
                #expect(try await home.run("fetches", "--config", file).status == 0, "\(file)")
            }

            try files.createSymbolicLink(atPath: next, withDestinationPath: "v2")
            try #require(unsafe rename(next, data) == 0)
            for file in [home.configuration, first] {
                #expect(try await home.run("fetches", "--config", file).status == 0, "\(file)")
            }
            try files.removeItem(atPath: home.path + "/v1")
            let reloaded = try await home.run("reload", "--config", home.configuration)
            #expect(reloaded.status == 0, "\(reloaded.errText)")
            #expect(reloaded.lines.last == "configuration reloaded")
            #expect(try await proxy.get("http://h.example/").status == 403)
            #expect(try await proxy.stop().status == 0)
            #expect(try sockets().isEmpty)
        }
    }

    @Test("larder status counts what went on with clients and origins")
    func status() async throws {
        try await Scene.play(answer: { _ in response(body: "x") }) { scene in
            let home = scene.home
            try home.configure(
                "access: [{action: deny, destinations: [h.example]}, {action: allow}]")
            let reloaded = try await home.run("reload", "--config", home.configuration)
            #expect(reloaded.status == 0, "\(reloaded.errText)")
            #expect(try await scene.get("/a").status == 200)
            let client = try await scene.proxy.connect()
            try await client.send(ProxyProcess.request("GET", "http://h.example/", []))
            #expect(try await client.message(to: "GET").status == 403)
            let page = try await home.run("status", "--config", home.configuration)
            #expect(page.status == 0, "\(page.errText)")
            #expect(page.lines.contains("own answers    403 1"), "\(page.outText)")
            #expect(page.lines.contains("configuration  \(home.configuration)"))
            let metrics = try await home.run(
                "status", "--prometheus", "--config", home.configuration)
            #expect(metrics.lines.contains("larder_own_answers_total{status=\"403\"} 1"))
            #expect(metrics.lines.contains("larder_client_requests_total 2"))
            #expect(metrics.lines.contains("larder_fetches_total 1"))
            #expect(metrics.lines.contains("larder_origin_connections_total 1"))
            let json = try await home.run("status", "--json", "--config", home.configuration)
            #expect(json.outText.contains("\"ownAnswers\":{\"403\":1}"), "\(json.outText)")
        }
        let home = try Home()
        try home.configure("")
        #expect(try await home.run("status", "--config", home.configuration).status == 69)
    }

    @Test("SIGTERM lets an exchange end, and takes no new client")
    func drain() async throws {
        let isOpen = Event(false)
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("")
            let origin = try await ScriptedOrigin.answering { _ in
                try await isOpen.wait(for: "the barrier") { $0 }
                return response(body: "late")
            }
            let proxy = try await home.serve()
            let client = try await proxy.connect()
            try await client.send(ProxyProcess.request("GET", origin.url("/a"), []))
            let idle = try await proxy.connect()
            try await origin.requests.wait(for: "the request") { $0.count == 1 }
            proxy.program.signal(SIGTERM)
            try await proxy.program.said("stopping")
            let nothing = try await idle.readAll()
            #expect(nothing.isEmpty)
            await #expect(throws: (any Error).self) { _ = try await proxy.connect() }
            isOpen.change { $0 = true }
            let answer = try await client.message(to: "GET")
            #expect(answer.text == "late")
            #expect(answer["Connection"] == "close")
            let end = try await proxy.program.ended()
            #expect(end.status == 0)
            await origin.stop()
        }
    }

    @Test(
        "The drain ends at its deadline, and a second SIGTERM ends it at once",
        arguments: [true, false])
    func deadline(_ isHurried: Bool) async throws {
        try await Scene.inTurn {
            let home = try Home()
            try home.configure("timeouts: {drain: \(isHurried ? "1 h" : "1 s")}")
            let origin = try await ScriptedOrigin.start { connection in
                _ = try await connection.request()
                _ = try await connection.wire.readAll()
            }
            let proxy = try await home.serve()
            let client = try await proxy.connect()
            try await client.send(ProxyProcess.request("GET", origin.url("/a"), []))
            try await origin.requests.wait(for: "the request") { $0.count == 1 }
            proxy.program.signal(SIGTERM)
            try await proxy.program.said("stopping")
            if isHurried { proxy.program.signal(SIGTERM) }
            let end = try await proxy.program.ended()
            #expect(end.status == 0)
            let nothing = try await client.readAll()
            #expect(nothing.isEmpty)
            await origin.stop()
        }
    }

    @Test("A second daemon on the same cache is refused with the first one's pid")
    func secondDaemon() async throws {
        try await Scene.play { _ in
            response(body: "x")
        } _: { scene in
            // A file of its own has a control socket of its own, and the cache of its session.
            try scene.home.write("listeners: [{address: '127.0.0.1:0'}]\n", to: "other.yaml")
            let end = try await scene.home.run(
                "serve", "--config", scene.home.path + "/other.yaml")
            #expect(end.status == 69)
            #expect(end.errText.contains("\(scene.proxy.program.pid)"))
            #expect(end.errText.contains(scene.home.cache))
            let again = try await scene.home.run("serve", "--config", scene.home.configuration)
            #expect(again.status == 69)
            let answer = try await scene.get("/a")
            #expect(answer.text == "x")
        }
    }

    @Test("The access log is written, opened anew on SIGHUP, and stays one line an exchange")
    func accessLog() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let file = home.path + "/access.log"
            try home.configure("log: {access: {format: squid, to: \(file)}}")
            let origin = try await ScriptedOrigin.answering { _ in response(body: "x") }
            let proxy = try await home.serve()
            _ = try await proxy.get(origin.url("/one"))
            try FileManager.default.moveItem(atPath: file, toPath: file + ".1")
            proxy.program.signal(SIGHUP)
            try await proxy.program.said("configuration reloaded")
            _ = try await proxy.get(origin.url("/two"), "User-Agent: a\\x0Ab")
            #expect(try await proxy.stop().status == 0)
            let old = try String(contentsOfFile: file + ".1", encoding: .utf8)
            let new = try String(contentsOfFile: file, encoding: .utf8)
            let both = old + new
            #expect(both.split(separator: "\n").count == 2)
            #expect(both.contains("TCP_MISS/200 "))
            #expect(both.contains("GET \(origin.url("/one")) "))
            #expect(new.contains("GET \(origin.url("/two")) "))
            await origin.stop()
        }
    }

    @Test("The access log tells what came of asking the origin about what is stored")
    func validations() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let file = home.path + "/access.log"
            try home.configure("log: {access: {format: squid, to: \(file)}}")
            let origin = try await ScriptedOrigin.start { connection in
                guard let request = try await connection.request() else { return }
                let isSame = request["If-None-Match"] == "\"a\"" && request["X-New"] == nil
                try await connection.send(
                    isSame
                        ? "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nConnection: close\r\n\r\n"
                        : response("200 OK", "ETag: \"a\"", "Connection: close", body: "x"))
            }
            let proxy = try await home.serve()
            let (url, other) = (origin.url("/a"), origin.url("/b"))
            #expect(try await proxy.get(url).text == "x")
            _ = try await proxy.getStored(url)
            let now = "Cache-Control: max-age=0"
            #expect(try await proxy.get(url, now).text == "x")
            #expect(try await proxy.get(url, now, "X-New: 1").text == "x")
            _ = try await proxy.getStored(url)
            await origin.stop()
            #expect(try await proxy.get(url, now).text == "x")
            #expect(try await proxy.get(other).status == 502)
            let only = "Cache-Control: only-if-cached"
            #expect(try await proxy.get(other, only).status == 504)
            #expect(try await proxy.stop().status == 0)
            let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
            let told = lines.map { $0.split(separator: " ") }.filter { !$0[3].contains("HIT") }
            #expect(
                told.map { "\($0[3]) \($0[8])" } == [
                    "TCP_MISS/200 HIER_DIRECT/127.0.0.1",
                    "TCP_REFRESH_UNMODIFIED/200 HIER_DIRECT/127.0.0.1",
                    "TCP_REFRESH_MODIFIED/200 HIER_DIRECT/127.0.0.1",
                    "TCP_REFRESH_FAIL_OLD/200 HIER_DIRECT/127.0.0.1",
                    "TCP_MISS/502 HIER_DIRECT/127.0.0.1", "TCP_OFFLINE_MISS/504 HIER_NONE/-",
                ])
        }
    }

    /// A pipe with a name, which holds 64 KiB (pipe(7)), and its reading end.
    private func pipe(in home: Home) throws -> (path: String, reader: CInt) {
        let path = home.path + "/log.pipe"
        try #require(unsafe mkfifo(path, 0o600) == 0)
        let reader = unsafe open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        try #require(reader >= 0)
        return (path, reader)
    }

    @Test(
        "A log that nobody reads keeps it for the time of the drain, or until the second SIGTERM",
        arguments: [true, false])
    func unreadLog(_ isHurried: Bool) async throws {
        try await Scene.inTurn {
            let home = try Home()
            let (path, reader) = try self.pipe(in: home)
            defer { close(reader) }
            try home.configure(
                "timeouts: {drain: \(isHurried ? "1 h" : "1 s")}\nlog: {access: {to: \(path)}}")
            let origin = try await ScriptedOrigin.answering { _ in response(body: "x") }
            let proxy = try await home.serve()
            let name = String(repeating: "x", count: 4_000)
            for number in 0..<32 { _ = try await proxy.get(origin.url("/\(number)/\(name)")) }
            proxy.program.signal(SIGTERM)
            try await proxy.program.said("stopping")
            if isHurried { proxy.program.signal(SIGTERM) }
            let end = try await proxy.program.ended()
            #expect(end.status == 0)
            await origin.stop()
        }
    }

    @Test("SIGHUP is followed by SIGTERM, too, where the log becomes a pipe that nobody reads")
    func pipeAfterReload() async throws {
        try await Scene.inTurn {
            let home = try Home()
            let (path, reader) = try self.pipe(in: home)
            close(reader)
            try home.configure("")
            let proxy = try await home.serve()
            try home.configure("log: {access: {to: \(path)}}")
            proxy.program.signal(SIGHUP)
            try await proxy.program.said("it is a pipe that no program reads")
            #expect(try await proxy.stop().status == 0)
        }
    }
}
