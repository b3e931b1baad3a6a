import Foundation
import Glibc
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Downloads that go on where others were broken off (§3.5)")
struct BodiesResumeTests {
    static let count = 600_000
    static let stop = 250_000

    /// Begins a download, and cancels it when some of it has been written.
    private func brokenOff(_ file: FileOrigin) async throws -> Data {
        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        let task = session.downloadTask(with: try file.url)
        task.resume()
        try await recorder.heard.wait(for: "some bytes") { !$0.written.isEmpty }
        let data = await task.cancelByProducingResumeData()
        let heard = try await recorder.completion()
        #expect(heard.error?.code == .cancelled)
        #expect(heard.error?.userInfo[NSURLSessionDownloadTaskResumeData] as? Data == data)
        #expect(heard.content == nil)
        session.invalidateAndCancel()
        file.stopsAt.change { $0 = nil }
        file.goOn.change { $0 = true }
        return try #require(data)
    }

    @Test("get the rest, in another session, and say so")
    func rest() async throws {
        let file = try await FileOrigin.start(count: Self.count, stopsAt: Self.stop)
        let blob = try await self.brokenOff(file)
        let resume = try #require(ResumeData(decoding: blob))
        #expect(resume.total == Int64(Self.count))
        #expect((1...Int64(Self.stop)).contains(resume.part.length))

        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        let task = session.downloadTask(withResumeData: blob)
        #expect(task.originalRequest?.url == (try file.url))
        task.resume()
        let heard = try await recorder.completion()
        #expect(heard.error == nil)
        #expect(heard.content == Data(file.content))
        #expect(recorder.order == ["resumed", "written", "finished", "metrics", "complete"])
        #expect(heard.offset?.0 == resume.part.length)
        #expect(heard.offset?.1 == Int64(Self.count))
        let rest = Int64(Self.count) - resume.part.length
        #expect(heard.written.reduce(0) { $0 + $1.0 } == rest)
        #expect(heard.written.last?.1 == Int64(Self.count))
        #expect(heard.written.last?.2 == Int64(Self.count))
        let asked = try #require(file.origin.requests.value.last)
        #expect(asked["Range"] == "bytes=\(resume.part.length)-")
        #expect(asked["If-Range"] == "\"v1\"")
        #expect(asked["Accept-Encoding"] == "identity")
        #expect(!FileManager.default.fileExists(atPath: resume.part.path))
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test("begin anew where the resource has changed, and end with the new one")
    func changed() async throws {
        let file = try await FileOrigin.start(count: Self.count, stopsAt: Self.stop)
        let blob = try await self.brokenOff(file)
        file.fields.change { $0 = ["ETag: \"v2\"", "Accept-Ranges: bytes"] }
        let (url, response) = try await URLSession.plain().download(resumeFrom: blob)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(try Data(contentsOf: url) == Data(file.content))
        #expect(file.origin.count == 2)
        try FileManager.default.removeItem(at: url)
        await file.origin.stop()
    }

    @Test(
        "ask again without a range where the answer is of no use",
        arguments: [
            "416 Range Not Satisfiable", "206 Partial Content",
        ])
    func refused(status: String) async throws {
        let file = try await FileOrigin.start(count: Self.count, stopsAt: Self.stop)
        let blob = try await self.brokenOff(file)
        await file.origin.stop()
        var resume = try #require(ResumeData(decoding: blob))
        // The same file elsewhere: at an origin that does not keep to what it was asked.
        let other = try await ScriptedOrigin.answering { request in
            guard request.has("Range") else { return response(body: "the whole") }
            return response(status, "Content-Range: bytes 0-4/600000", body: "wrong")
        }
        resume.url = try .of(other.url("/file.bin"))
        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        session.downloadTask(withResumeData: resume.encoded()).resume()
        let heard = try await recorder.completion()
        #expect(heard.content == Data("the whole".utf8))
        #expect(heard.offset == nil)
        #expect(other.requests.value.map { $0.has("Range") } == [true, false])
        #expect(!FileManager.default.fileExists(atPath: resume.part.path))
        await other.stop()
    }

    @Test("let go of the partial file when they are cancelled, for others to go on with it")
    func letGo() async throws {
        let file = try await FileOrigin.start(count: Self.count, stopsAt: Self.stop)
        let blob = try await self.brokenOff(file)
        let resume = try #require(ResumeData(decoding: blob))
        let s = ScriptedSession()
        let task = s.session.downloadTask(withResumeData: blob)
        task.resume()
        _ = try await s.loaders.load()
        #expect(DownloadFile.open(resume.part) == nil)
        task.cancel()
        try await s.delegate?.completion()
        #expect(DownloadFile.open(resume.part) != nil)
        // Also one that is only about to open it.
        let purpose = DownloadPurpose()
        purpose.state.withLock { state in
            state.resume = resume
            _ = state.requests.conclude()
        }
        await withCheckedContinuation { continuation in
            purpose.prepare(for: task) { continuation.resume() }
        }
        let found = DownloadFile.open(resume.part)
        #expect(found != nil)
        withExtendedLifetime((task, purpose)) {}
        found?.remove()
        await file.origin.stop()
    }

    @Test("leave the partial file to the next one, too, when they end while it is being looked at")
    func checked() async throws {
        let file = try await FileOrigin.start(count: Self.count, stopsAt: Self.stop)
        let blob = try await self.brokenOff(file)
        let (isChecking, goOn) = (Event(false), DispatchSemaphore(value: 0))
        let purpose = DownloadPurpose(for: .delegate) {
            isChecking.change { $0 = true }
            _ = goOn.wait(timeout: .now() + 30)
        }
        let s = ScriptedSession()
        let task = s.session.makeDownload(TaskOrder(resuming: blob, for: purpose))
        task.resume()
        try await isChecking.wait(for: "the look at the file") { $0 }
        let told = Event<[Data?]>([])
        task.cancel { data in told.change { $0.append(data) } }
        await s.session.delegateQueue.settled()
        // Somebody who went on with it now would find it locked, and begin anew.
        #expect(told.value.isEmpty && s.delegate?.errors.value.isEmpty == true)
        goOn.signal()
        try await told.wait(for: "the resume data") { $0.count == 1 }
        #expect(told.value == [blob])
        s.session.downloadTask(withResumeData: blob).resume()
        let load = try await s.loaders.load()
        #expect(load.request.value(forHTTPHeaderField: "Range") != nil)
        s.session.invalidateAndCancel()
        try await s.delegate?.completion(2)
        if let part = ResumeData(decoding: blob)?.part { unsafe unlink(part.path) }
        await file.origin.stop()
    }

    enum Harm: CaseIterable { case gone, short, altered }

    @Test("begin anew where the partial file is gone, short or altered", arguments: Harm.allCases)
    func harmed(harm: Harm) async throws {
        let file = try await FileOrigin.start(count: Self.count, stopsAt: Self.stop)
        let blob = try await self.brokenOff(file)
        let part = try #require(ResumeData(decoding: blob)).part
        switch harm {
        case .gone: #expect(unsafe unlink(part.path) == 0)
        case .short: #expect(unsafe truncate(part.path, off_t(part.length - 1)) == 0)
        case .altered:
            var bytes = try Data(contentsOf: URL(fileURLWithPath: part.path))
            bytes[bytes.startIndex + 5] ^= 0xFF
            try bytes.write(to: URL(fileURLWithPath: part.path))
        }
        let (url, response) = try await URLSession.plain().download(resumeFrom: blob)
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(try Data(contentsOf: url) == Data(file.content))
        #expect(file.origin.requests.value.last?.has("Range") == false)
        try FileManager.default.removeItem(at: url)
        unsafe unlink(part.path)
        await file.origin.stop()
    }

    @Test("are possible behind a connection that broke, by the error's userInfo under both names")
    func failed() async throws {
        let file = try await FileOrigin.start(
            count: Self.count, stopsAt: Self.stop, cuts: true)
        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        session.downloadTask(with: try file.url).resume()
        let error = try #require(try await recorder.completion().error)
        #expect(error.code == .networkConnectionLost)
        #expect(URLSessionDownloadTaskResumeData == NSURLSessionDownloadTaskResumeData)
        let blob = try #require(error.userInfo[URLSessionDownloadTaskResumeData] as? Data)
        // Broken off once more, further on, then to the end.
        let results = Event<[(Data?, (any Error)?)]>([])
        let read: @Sendable (URL?, URLResponse?, (any Error)?) -> Void = { url, _, error in
            let data = url.flatMap { try? Data(contentsOf: $0) }
            results.change { $0.append((data, error)) }
        }
        session.downloadTask(withResumeData: blob, completionHandler: read).resume()
        try await results.wait(for: "the second end") { $0.count == 1 }
        let second = try #require(results.value[0].1 as? URLError)
        let next = try #require(second.userInfo[NSURLSessionDownloadTaskResumeData] as? Data)
        #expect(ResumeData(decoding: next)?.part.length == Int64(2 * Self.stop))
        file.stopsAt.change { $0 = nil }
        session.downloadTask(withResumeData: next, completionHandler: read).resume()
        try await results.wait(for: "the last end") { $0.count == 2 }
        #expect(results.value[1].0 == Data(file.content))
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test("keep what they were to go on with where they get no answer")
    func unreachable() async throws {
        let file = try await FileOrigin.start(count: Self.count, stopsAt: Self.stop)
        let blob = try await self.brokenOff(file)
        await file.origin.stop()
        let error = await #expect(throws: URLError.self) {
            _ = try await URLSession.plain().download(resumeFrom: blob)
        }
        #expect(error?.userInfo[NSURLSessionDownloadTaskResumeData] as? Data == blob)
        let part = try #require(ResumeData(decoding: blob)).part
        #expect(DownloadFile.open(part) != nil)
        unsafe unlink(part.path)
    }

    @Test(
        "are not possible without validators, ranges, or another way to be sure",
        arguments: [
            [], ["Accept-Ranges: bytes"], ["ETag: \"v1\""],
            ["ETag: W/\"v1\"", "Accept-Ranges: bytes"],
            ["ETag: \"v1\"", "Accept-Ranges: none"],
        ])
    func notResumable(fields: [String]) async throws {
        let file = try await FileOrigin.start(
            count: Self.count, fields: fields, stopsAt: Self.stop)
        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        let task = session.downloadTask(with: try file.url)
        task.resume()
        try await recorder.heard.wait(for: "some bytes") { !$0.written.isEmpty }
        #expect(await task.cancelByProducingResumeData() == nil)
        let heard = try await recorder.completion()
        #expect(heard.error?.code == .cancelled)
        // Over already: there is nothing to produce, and nobody waits for ever.
        #expect(await task.cancelByProducingResumeData() == nil)
        file.goOn.change { $0 = true }
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test(
        "fail with unsupportedURL where the data is none (§3.5)",
        arguments: [
            Data(), Data("nonsense".utf8), Data(repeating: 0xAB, count: 5000),
        ])
    func invalid(blob: Data) async throws {
        let session = URLSession.plain()
        let results = Event<[(URL?, URLResponse?, (any Error)?)]>([])
        session.downloadTask(withResumeData: blob) { url, response, error in
            results.change { $0.append((url, response, error)) }
        }.resume()
        try await results.wait(for: "the end") { !$0.isEmpty }
        #expect(results.value[0].0 == nil && results.value[0].1 == nil)
        #expect((results.value[0].2 as? URLError)?.code == .unsupportedURL)
        let recorder = DownloadRecorder()
        let heard = URLSession.plain(recorder)
        let task = heard.downloadTask(withResumeData: blob)
        #expect(task.originalRequest == nil)
        task.resume()
        #expect(try await recorder.completion().error?.code == .unsupportedURL)
        let error = await #expect(throws: URLError.self) {
            _ = try await session.download(resumeFrom: blob)
        }
        #expect(error?.code == .unsupportedURL)
    }
}
