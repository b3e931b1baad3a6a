import Foundation
import LarderHTTP
import NIOCore
import Synchronization
import Testing

@testable import LarderTransfer

/// An FTP server of a few files (RFC 959, RFC 2428), for one transfer at a time.
private struct FTPScript: Sendable {
    var files: [String: String] = ["/pub/a.txt": "hello", "/pub/empty": ""]
    var listing = "-rw-r--r-- 1 u g 5 Jan  1 00:00 a.txt\r\n"
    var password: String?
    /// How much of a file is sent before the data connection breaks off.
    var cutAfter: Int?
    var stall: Stall?
    /// Named for data in place of one of its own.
    var dataPort: UInt16?
    let notes = Notes()

    /// Where it says nothing until it is told to go on.
    struct Stall {
        /// Before it says or does this.
        let place: String
        let isReached = Gate()
        let goesOn = Gate()
    }

    private func stand(at place: String) {
        guard let stall = self.stall, stall.place == place else { return }
        stall.isReached.open()
        if !stall.goesOn.block() { self.notes.add("nobody came") }
    }

    func serve(_ control: OriginConnection) {
        var directory = ""
        var data: OriginConnection?
        control.write("220 ready\r\n")
        while let line = control.readLine() {
            self.notes.add(line)
            let word = line.prefix { $0 != " " }
            let argument = String(line.dropFirst(word.count + 1))
            let path = argument.hasPrefix("/") ? argument : directory + "/" + argument
            switch word {
            case "USER": control.write("331 password\r\n")
            case "PASS":
                let refused = self.password.map { $0 != argument } ?? false
                control.write(refused ? "530 no\r\n" : "230 in\r\n")
            case "PWD":
                control.write("257 \"/\" is current\r\n")
            case "CWD":
                directory = argument == "/" ? "" : path
                control.write(directory == "/none" ? "550 no\r\n" : "250 there\r\n")
            case "EPSV":
                if let port = self.dataPort {
                    control.write("229 (|||\(port)|)\r\n")
                    continue
                }
                guard let (listener, port) = try? ScriptedOrigin.listen() else { return }
                control.write("229 (|||\(port)|)\r\n")
                data = OriginConnection(accept(listener, nil, nil), index: 0)
                _ = close(listener)
            case "TYPE": control.write("200 type\r\n")
            case "MDTM":
                control.write(self.files[path] == nil ? "550 no\r\n" : "213 20240229120000\r\n")
            case "SIZE":
                control.write(self.files[path].map { "213 \($0.utf8.count)\r\n" } ?? "550 no\r\n")
            case "RETR":
                guard let file = self.files[path] else {
                    control.write("550 no such file\r\n")
                    continue
                }
                self.send(file, control, &data)
            case "LIST": self.send(self.listing, control, &data)
            case "QUIT":
                self.stand(at: "QUIT")
                return
            default: control.write("502 what\r\n")
            }
        }
    }

    private func send(_ text: String, _ control: OriginConnection, _ data: inout OriginConnection?)
    {
        control.write("150 coming\r\n")
        data?.write(String(text.prefix(self.cutAfter ?? .max)))
        data?.close()
        data = nil
        self.stand(at: "226")
        control.write(self.cutAfter == nil ? "226 done\r\n" : "426 broken\r\n")
    }
}

@Suite("ftp resources (RFC 1738 §3.2)", .timeLimit(.minutes(10)))
struct FTPTests {
    private func fetch(
        _ script: FTPScript, _ method: LarderHTTP.Method, _ path: String, userInfo: String? = nil,
        _ options: TransferOptions = TransferOptions()
    ) async throws -> Recorder.Record {
        let origin = try ScriptedOrigin { script.serve($0) }
        var request = Request(
            method: method,
            uri: TargetURI(
                scheme: .ftp, userInfo: userInfo, host: "127.0.0.1", port: origin.port,
                pathAndQuery: path))
        request.transfer = options
        return try await withUpstream { await $0.answer(to: request) }
    }

    @Test(
        "are answered as HTTP, with length and date",
        arguments: [("/pub/a.txt", "hello"), ("/pub/empty", "")])
    func file(_ path: String, _ content: String) async throws {
        let record = try await self.fetch(FTPScript(), .get, path)
        #expect(record.head?.status == .ok, "\(String(describing: record.failure))")
        #expect(
            record.head?.fields == [
                "Content-Type": "application/octet-stream",
                "Content-Length": "\(content.utf8.count)",
                "Last-Modified": "Thu, 29 Feb 2024 12:00:00 GMT",
            ])
        #expect(record.length == .known(UInt64(content.utf8.count)))
        #expect(record.text == content)
        #expect(record.violations.isEmpty)
    }

    @Test("are fetched without a question for their date where nobody wants it")
    func noDate() async throws {
        var script = FTPScript()
        script.files = ["/a.txt": "hello"]
        var options = TransferOptions()
        options.asksFTPDate = false
        let record = try await self.fetch(script, .get, "/a.txt", options)
        #expect(record.text == "hello")
        #expect(record.head?.fields.contains("Last-Modified") == false)
        #expect(
            script.notes.all.map { $0.prefix { $0 != " " } }.filter { $0 != "QUIT" }
                == ["USER", "PASS", "PWD", "EPSV", "TYPE", "SIZE", "RETR"])
    }

    @Test("that a server refuses are failures where that is wanted")
    func refusals() async throws {
        var options = TransferOptions()
        options.reportsFTPRefusals = true
        let missing = try await self.fetch(FTPScript(), .get, "/none.txt", options)
        #expect(missing.failure?.cause == .fileNotFound)
        var script = FTPScript()
        script.password = "other"
        let locked = try await self.fetch(script, .get, "/pub/a.txt", options)
        #expect(locked.failure?.cause == .loginDenied)
    }

    @Test("can be asked about with HEAD")
    func head() async throws {
        let script = FTPScript()
        let record = try await self.fetch(script, .head, "/pub/a.txt")
        #expect(record.head?.fields.string("content-length") == "5")
        #expect(record.head?.fields.string("last-modified") == "Thu, 29 Feb 2024 12:00:00 GMT")
        #expect(record.length == BodyLength.none)
        #expect(record.text.isEmpty)
        #expect(record.failure == nil)
        #expect(!script.notes.all.contains { $0.hasPrefix("RETR") })
    }

    @Test("that are directories are listed")
    func directory() async throws {
        let script = FTPScript()
        let record = try await self.fetch(script, .get, "/pub/")
        #expect(record.head?.fields.string("content-type") == "text/plain; charset=utf-8")
        #expect(record.text == "-rw-r--r-- 1 u g 5 Jan  1 00:00 a.txt\n")  // libcurl: text, so LF.
        #expect(record.length == .unknown)
    }

    @Test("that do not exist are not found", arguments: ["/pub/none.txt", "/none/a.txt"])
    func notFound(_ path: String) async throws {
        let record = try await self.fetch(FTPScript(), .get, path)
        #expect(record.head?.status == StatusCode(404), "\(String(describing: record.failure))")
        #expect(record.length == .known(UInt64(record.body.readableBytes)))
        #expect(record.trailers != nil)
    }

    @Test("are fetched as the URI's user, or as anonymous")
    func login() async throws {
        var script = FTPScript()
        script.password = "s:ecret@1"
        let good = try await self.fetch(
            script, .get, "/pub/a.txt", userInfo: "me%40home:s:ecret%401")
        #expect(good.text == "hello", "\(String(describing: good.failure))")
        #expect(script.notes.all.first == "USER me@home")
        let bad = try await self.fetch(script, .get, "/pub/a.txt")
        #expect(bad.head?.status == StatusCode(403))
        let injected = try await self.fetch(script, .get, "/pub/a.txt", userInfo: "a%0D%0ADELE x:b")
        #expect(injected.failure?.party == .client)
    }

    @Test("that break off are incomplete")
    func cut() async throws {
        var script = FTPScript()
        script.cutAfter = 2
        let record = try await self.fetch(script, .get, "/pub/a.txt")
        #expect(record.failure?.kind == .httpResponseIncomplete)
        #expect(record.text == "he")
    }

    @Test(
        "of a server that stands still at the end hold up nobody who fetches by HTTP",
        arguments: ["226", "QUIT"], [true, false])
    func stall(_ place: String, sharesThreads: Bool) async throws {
        let stall = FTPScript.Stall(place: place)
        var script = FTPScript()
        script.stall = stall
        let server = try ScriptedOrigin { [script] in script.serve($0) }
        let origin = try ScriptedOrigin.echoingTargets()
        let request = Request(
            method: .get,
            uri: TargetURI(
                scheme: .ftp, host: "127.0.0.1", port: server.port, pathAndQuery: "/pub/a.txt"))
        try await withUpstream {
            $0.threads = 1
            $0.sharesThreads = sharesThreads
        } _: { upstream in
            async let file = upstream.answer(to: request)
            await stall.isReached.passed()
            for number in 0..<5 {
                let record = await upstream.answer(to: origin.request(.get, "/\(number)"))
                #expect(record.text == "0 /\(number)")
            }
            stall.goesOn.open()
            let record = await file
            #expect(record.text == "hello", "\(String(describing: record.failure))")
        }
        #expect(!script.notes.all.contains("nobody came"))
    }

    @Test("can only be read", arguments: [LarderHTTP.Method.put, .delete, .post, .options])
    func readOnly(_ method: LarderHTTP.Method) async throws {
        let record = try await self.fetch(FTPScript(), method, "/pub/a.txt")
        #expect(record.failure?.kind == .proxyConfigurationError)
        #expect(record.failure?.party == .client)
    }

    @Test("get no data from ports of other services, whatever the server names")
    func dataPort() async throws {
        let script = FTPScript(dataPort: 25)
        let record = try await self.fetch(script, .get, "/pub/a.txt")
        #expect(record.failure?.kind == .destinationUnavailable)
        #expect(record.failure?.detail == "the FTP server names port 25 for its data")
        #expect(!script.notes.all.contains { $0.hasPrefix("RETR") })
    }

    @Test("cannot smuggle commands into the control connection")
    func injection() async throws {
        let script = FTPScript()
        let record = try await self.fetch(script, .get, "/pub/a%0D%0ADELE%20x")
        #expect(record.failure?.party == .client, "\(String(describing: record.failure))")
        #expect(!script.notes.all.contains { $0.contains("DELE") })
    }
}
