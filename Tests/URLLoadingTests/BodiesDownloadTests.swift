import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("Downloads (§3.4)")
struct BodiesDownloadTests {
    @Test(
        "write a file, tell the delegate in order, and delete the file (§1.6)",
        arguments: [
            0, 10, 3_000_000,
        ])
    func delegate(count: Int) async throws {
        let file = try await FileOrigin.start(count: count)
        let recorder = DownloadRecorder()
        let session = URLSession.plain(recorder)
        let task = session.downloadTask(with: try file.url)
        task.resume()
        let heard = try await recorder.completion()
        #expect(heard.error == nil)
        #expect(heard.content == Data(file.content))
        let wrote = count > 0 ? ["written"] : []
        #expect(recorder.order == wrote + ["finished", "metrics", "complete"])
        #expect(heard.written.reduce(0) { $0 + $1.0 } == Int64(count))
        #expect(heard.written.allSatisfy { $0.2 == Int64(count) })
        #expect(heard.written.map(\.1) == heard.written.map(\.1).sorted())
        #expect(heard.written.last?.1 == (count > 0 ? Int64(count) : nil))
        #expect(task.countOfBytesReceived == Int64(count))
        let location = try #require(heard.location)
        #expect(!FileManager.default.fileExists(atPath: location.path))
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test("give the file to a handler, for as long as that runs")
    func handler() async throws {
        let file = try await FileOrigin.start(count: 1000)
        let session = URLSession.plain()
        let results = Event<[(Data?, URL?, URLResponse?, (any Error)?)]>([])
        session.downloadTask(with: try file.url) { url, response, error in
            let data = url.flatMap { try? Data(contentsOf: $0) }
            results.change { $0.append((data, url, response, error)) }
        }.resume()
        try await results.wait(for: "the result") { !$0.isEmpty }
        await session.queueEmptied()
        let (data, url, response, error) = results.value[0]
        #expect(data == Data(file.content))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect(error == nil)
        #expect(!FileManager.default.fileExists(atPath: try #require(url).path))
        await file.origin.stop()
    }

    @Test("leave the file to whoever awaited it (§1.5)")
    func async() async throws {
        let file = try await FileOrigin.start(count: 100_000)
        let session = URLSession.plain()
        let (url, response) = try await session.download(from: file.url)
        await session.queueEmptied()
        #expect(try Data(contentsOf: url) == Data(file.content))
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        try FileManager.default.removeItem(at: url)
        await file.origin.stop()
    }

    @Test("end well with whatever status: the server's answer is the file")
    func errorStatus() async throws {
        let origin = try await ScriptedOrigin.answering { _ in
            response("404 Not Found", body: "nothing here")
        }
        let (url, answer) = try await URLSession.plain().download(from: .of(origin.url("/")))
        #expect(try String(contentsOf: url, encoding: .utf8) == "nothing here")
        #expect((answer as? HTTPURLResponse)?.statusCode == 404)
        try FileManager.default.removeItem(at: url)
        await origin.stop()
    }

    @Test("that are cancelled or fail without resume data leave nothing on the disk")
    func nothingLeft() async throws {
        try await Scratch.with { scratch in
            let file = try await FileOrigin.start(
                count: 500_000, fields: [], stopsAt: 200_000)
            for isCancelled in [true, false] {
                let recorder = DownloadRecorder()
                let session = URLSession.plain(recorder)
                let purpose = DownloadPurpose(for: .delegate, in: scratch.url)
                let task = session.makeDownload(
                    TaskOrder(URLRequest(url: try file.url), for: purpose))
                task.resume()
                try await recorder.heard.wait(for: "something written") { !$0.written.isEmpty }
                let isThere = try !scratch.names.isEmpty
                #expect(isThere)
                if isCancelled { task.cancel() } else { task.fail(.networkConnectionLost) }
                let heard = try await recorder.completion()
                #expect(heard.error != nil && heard.location == nil)
                #expect(heard.error?.userInfo[NSURLSessionDownloadTaskResumeData] == nil)
                await session.queueEmptied()
                try await self.fileQueueEmptied()
                let names = try scratch.names
                #expect(names.isEmpty)
                session.invalidateAndCancel()
            }
            await file.origin.stop()
        }
    }

    private func fileQueueEmptied() async throws {
        await withCheckedContinuation { continuation in
            FileWork.queue.async(flags: .barrier) { continuation.resume() }
        }
    }

    @Test("fail with the disk's error where the file cannot be made")
    func noDirectory() async throws {
        let file = try await FileOrigin.start(count: 100)
        let results = Event<[(any Error)?]>([])
        let purpose = DownloadPurpose(
            for: .handler { _, _, error in results.change { $0.append(error) } },
            in: URL(fileURLWithPath: "/nonexistent-directory"))
        URLSession.plain().makeDownload(
            TaskOrder(URLRequest(url: try file.url), for: purpose)
        ).resume()
        try await results.wait(for: "the end") { !$0.isEmpty }
        #expect((results.value[0] as? URLError)?.code == .cannotCreateFile)
        await file.origin.stop()
    }

    @Test("are what a data task becomes: it hears nothing more, they hear the rest (§4.3)")
    func becoming() async throws {
        let file = try await FileOrigin.start(count: 400_000)
        let recorder = DownloadRecorder(answering: .becomeDownload)
        let session = URLSession.plain(recorder)
        let task = session.dataTask(with: try file.url)
        task.resume()
        let heard = try await recorder.completion()
        await session.queueEmptied()
        #expect(heard.error == nil)
        #expect(heard.content == Data(file.content))
        #expect(
            recorder.order == ["response", "became", "written", "finished", "metrics", "complete"])
        #expect(recorder.heard.value.completions.count == 1)
        #expect(task.state == .completed)
        #expect(task.error == nil)
        #expect(file.origin.count == 1)
        #expect(await session.allTasks.isEmpty)
        session.invalidateAndCancel()
        await file.origin.stop()
    }

    @Test("complete once, however a cancel falls (200 times)")
    func races() async throws {
        let file = try await FileOrigin.start(count: 20_000)
        let session = URLSession.plain()
        let url = try file.url
        for index in 0..<200 {
            let calls = Event<[Bool]>([])
            let resumes = Event<[Data?]>([])
            let task = session.downloadTask(with: url) { url, _, error in
                calls.change { $0.append((url == nil) == (error != nil)) }
            }
            task.resume()
            for _ in 0..<(index % 20) { await Task.yield() }
            if index % 2 == 0 {
                task.cancel { data in resumes.change { $0.append(data) } }
                try await resumes.wait(for: "the resume data") { !$0.isEmpty }
            } else {
                task.cancel()
            }
            try await calls.wait(for: "the end") { !$0.isEmpty }
            await session.queueEmptied()
            #expect(calls.value == [true])
            #expect(resumes.value.count == (index % 2 == 0 ? 1 : 0))
            if let blob = resumes.value.last, let blob {
                let resume = try #require(ResumeData(decoding: blob))
                try FileManager.default.removeItem(atPath: resume.part.path)
            }
        }
        await file.origin.stop()
    }
}
