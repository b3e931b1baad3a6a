import Foundation
import Glibc
import Testing

@testable import LarderControl

/// A directory of its own for each test, removed afterwards.
final class TemporaryDirectory {
    let path: String

    init() {
        var template = Array("/tmp/larder-control-XXXXXX".utf8CString)
        self.path = unsafe template.withUnsafeMutableBufferPointer {
            let made = unsafe $0.baseAddress.flatMap { unsafe mkdtemp($0) }
            return unsafe made.map { unsafe String(cString: $0) } ?? "/nowhere"
        }
    }

    deinit { _ = unsafe system("rm -rf \(self.path)") }
}

@Suite("The control socket")
struct ControlSocketTests {
    /// Answers each connection's first request with these lines, then closes.
    private func serve(_ descriptor: CInt, _ answer: [UInt8]) {
        _ = fcntl(descriptor, F_SETFL, 0)
        // A thread of its own: the tests block those that tasks run on.
        Thread.detachNewThread {
            let connection = accept(descriptor, nil, nil)
            var piece = [UInt8](repeating: 0, count: 4096)
            _ = unsafe read(connection, &piece, piece.count)
            _ = unsafe write(connection, answer, answer.count)
            close(connection)
        }
    }

    @Test("is for its owner alone, in a directory of its own")
    func mode() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/a/b/control.sock"
        let descriptor = try ControlSocket.listen(at: path)
        defer { close(descriptor) }
        var status = stat()
        #expect(unsafe stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o600)
        #expect(unsafe stat(directory.path + "/a/b", &status) == 0)
        #expect(status.st_mode & 0o777 == 0o700)
    }

    @Test("is taken over from the dead, not from the living")
    func stale() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/control.sock"
        let first = try ControlSocket.listen(at: path)
        #expect(throws: ControlError(.inUse, "another proxy listens at \(path)")) {
            try ControlSocket.listen(at: path)
        }
        close(first)
        #expect(try !ControlSocket.isAnswered(path))
        let second = try ControlSocket.listen(at: path)
        #expect(try ControlSocket.isAnswered(path))
        close(second)
    }

    @Test("takes the place of nothing that is no socket", arguments: ["file", "link", "directory"])
    func others(_ kind: String) throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/control.sock"
        let other = directory.path + "/other"
        switch kind {
        case "link":
            // To the socket of somebody who has died, even.
            close(try ControlSocket.listen(at: other))
            #expect(unsafe symlink(other, path) == 0)
        case "directory": #expect(unsafe mkdir(path, 0o700) == 0)
        default: try Data("precious".utf8).write(to: URL(fileURLWithPath: path))
        }
        let before = try #require(ControlSocket.file(path))
        #expect {
            close(try ControlSocket.listen(at: path))
        } throws: {
            ($0 as? ControlError)?.description.contains("no socket lies at \(path)") == true
        }
        #expect(ControlSocket.file(path) == before)
    }

    @Test("goes with whoever made it, and another's in its place stays")
    func removal() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/control.sock"
        close(try ControlSocket.listen(at: path))
        let first = try #require(ControlSocket.file(path))
        #expect(unsafe rename(path, path + ".old") == 0)
        close(try ControlSocket.listen(at: path))
        let second = try #require(ControlSocket.file(path))
        ControlSocket.remove(path, ifStill: first)
        #expect(ControlSocket.file(path) == second)
        ControlSocket.remove(path, ifStill: second)
        #expect(ControlSocket.file(path) == nil)
    }

    @Test("A proxy that accepts nobody is not waited for without end, and is there nevertheless")
    func fullQueue() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/control.sock"
        let descriptor = try ControlSocket.listen(at: path)
        var held = [descriptor]
        defer { for descriptor in held { close(descriptor) } }
        do throws(ControlError) {
            for _ in 0..<100 {
                held.append(try ControlSocket.connect(to: path, within: .milliseconds(20)))
            }
            Issue.record("all found a place")
        } catch {
            #expect(error.code == .timedOut)
        }
        #expect(held.count > 2)
        #expect(try ControlSocket.isAnswered(path))
    }

    @Test("A path that no socket can have is said so")
    func longPath() {
        #expect(throws: ControlError.self) {
            try ControlSocket.isAnswered("/" + String(repeating: "x", count: 108))
        }
    }

    @Test("A client reads an answer of many lines")
    func answer() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/control.sock"
        let descriptor = try ControlSocket.listen(at: path)
        defer { close(descriptor) }
        var lines: [UInt8] = []
        for n in 0..<100 { lines += try ControlCodec.line(ControlReply.progress(UInt64(n))) }
        lines += try ControlCodec.line(ControlReply.end)
        self.serve(descriptor, lines)
        var client = try ControlClient(paths: [directory.path + "/none", path])
        var seen: [ControlReply] = []
        try client.send(.status) {
            seen.append($0)
            return true
        }
        #expect(seen == (0..<100).map { .progress(UInt64($0)) })
    }

    @Test("A refusal, and an answer that breaks off, are errors")
    func broken() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/control.sock"
        let descriptor = try ControlSocket.listen(at: path)
        defer { close(descriptor) }
        let failure = ControlFailure(.noSuchSession, "there is none")
        self.serve(descriptor, try ControlCodec.line(ControlReply.failed(failure)))
        var client = try ControlClient(paths: [path])
        #expect(throws: ControlRefusal(failure: failure)) { try client.send(.status) { _ in true } }
        self.serve(descriptor, Array("{\"larder\":1,".utf8))
        var second = try ControlClient(paths: [path])
        #expect {
            try second.send(.status) { _ in true }
        } throws: { ($0 as? ControlError)?.code == .closed }
    }

    @Test("A client's patience ends")
    func silent() throws {
        let directory = TemporaryDirectory()
        let path = directory.path + "/control.sock"
        let descriptor = try ControlSocket.listen(at: path)
        defer { close(descriptor) }
        var client = try ControlClient(paths: [path], patience: .milliseconds(20))
        #expect {
            try client.send(.status) { _ in true }
        } throws: { ($0 as? ControlError)?.code == .timedOut }
    }

    @Test("Nobody there is told as that")
    func nobody() {
        #expect {
            _ = try ControlClient(paths: ["/nowhere/a", "/nowhere/b"])
        } throws: { ($0 as? ControlError)?.code == .notRunning }
    }
}
