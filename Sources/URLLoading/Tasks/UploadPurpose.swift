import Foundation
import Synchronization

/// An upload that can be gone on with, for whatever its response is for.
///
/// ```
/// creating ─▶ answered | broken off
/// asking ─▶ appending ─▶ answered | broken off
///   ▲            │ 409: the server has another amount
///   └────────────┘
/// ```
///
/// A server that keeps what comes says where, by a 104; what is broken off behind that leaves resume
/// data. A task made of that begins with the question how much the server has.
final class UploadPurpose: TaskPurpose {
    /// How often a server may be asked how much it has.
    private static let questions = 3

    private struct State {
        var stage = ResumableUpload.Stage.creating
        var asked = 0
        /// Where the server keeps the upload.
        var resource: URL?
        /// The server has been asked to keep it.
        var isOffered = false
        /// Who waits for resume data.
        var requests = ResumeDataRequests()
    }

    private let base: any TaskPurpose
    private let content: UploadBody
    /// What it goes on with.
    private let resume: UploadResumeData?
    private let state: Mutex<State>

    /// - Parameter content: of the task.
    init(_ base: any TaskPurpose, sending content: UploadBody) {
        self.base = base
        self.content = content
        self.resume = nil
        self.state = Mutex(State())
    }

    init(_ base: any TaskPurpose, resuming resume: UploadResumeData) {
        self.base = base
        self.content = .none
        self.resume = resume
        self.state = Mutex(State(stage: .asking, asked: 1, resource: resume.resource))
    }

    // MARK: Requests

    func asking(_ request: URLRequest) -> URLRequest {
        let stage = self.state.withLock { $0.stage }
        if stage == .creating {
            let isOffered = self.content.isSomething && ResumableUpload.mayOffer(request)
            // What another request before it was told does not count for this one.
            self.state.withLock { state in
                state.resource = nil
                state.isOffered = isOffered
            }
            guard isOffered else { return request }
        }
        var request = request
        // That of the content as a whole.
        if stage != .creating { request.setValue(nil, forHTTPHeaderField: "Content-Type") }
        for (name, value) in ResumableUpload.fields(of: stage) {
            request.setValue(value, forHTTPHeaderField: name)
        }
        return request
    }

    /// How much is left out of what is sent, as the server has it.
    var sentBefore: Int64 {
        self.state.withLock { state in
            if case .appending(let offset) = state.stage { offset } else { 0 }
        }
    }

    // MARK: Responses

    func informed(by response: HTTPURLResponse, for task: URLSessionTask) {
        guard let url = task.currentRequest?.url,
            let resource = ResumableUpload.resource(by: response, to: url)
        else { return }
        self.state.withLock { if $0.stage == .creating, $0.isOffered { $0.resource = resource } }
    }

    func reconsider(_ answer: LoadAnswer, for task: URLSessionTask) -> URLRequest? {
        guard let resume = self.resume, let response = answer.response as? HTTPURLResponse else {
            return nil
        }
        switch self.state.withLock({ $0.stage }) {
        case .creating: return nil
        case .asking:
            switch ResumableUpload.state(by: response) {
            case .unknown, .complete: return nil
            case .nonsense:
                task.fail(.badServerResponse)
                return nil
            case .has(let offset): return self.append(resume, from: offset, to: task)
            }
        case .appending:
            guard response.statusCode == 409 else { return nil }
            return self.askAgain(resume, for: task)
        }
    }

    private func append(
        _ resume: UploadResumeData, from offset: Int64, to task: URLSessionTask
    ) -> URLRequest? {
        do throws(URLError) {
            let rest = try resume.rest(from: offset)
            self.state.withLock { $0.stage = .appending(offset) }
            task.send(rest, of: resume.length)
        } catch {
            task.settle(.failed(error))
            return nil
        }
        return task.currentRequest.map { $0.by("PATCH") }
    }

    private func askAgain(_ resume: UploadResumeData, for task: URLSessionTask) -> URLRequest? {
        let asks = self.state.withLock { state in
            guard state.asked < Self.questions else { return false }
            state.asked += 1
            state.stage = .asking
            return true
        }
        guard asks else { return nil }
        task.send(.none, of: resume.length)
        return task.currentRequest.map { $0.by("HEAD") }
    }

    // MARK: The end

    /// Has somebody hear of the resume data when the task is over.
    ///
    /// - Returns: false where it is over already; then nothing is called.
    func produceResumeData(for handler: @escaping ResumeDataRequests.Handler) -> Bool {
        self.state.withLock { $0.requests.add(handler) }
    }

    func settle(
        _ task: URLSessionTask, _ outcome: TaskOutcome,
        then: @escaping @Sendable (TaskOutcome) -> Void
    ) {
        let (handlers, resource) = self.state.withLock { state in
            (state.requests.conclude(), state.resource)
        }
        let isResumable: Bool =
            switch outcome {
            case .finished: false
            case .cancelled: resource != nil && !handlers.isEmpty
            case .failed(let error): resource != nil && ResumableUpload.mayResume(behind: error)
            }
        guard isResumable || !handlers.isEmpty else {
            return self.base.settle(task, outcome, then: then)
        }
        // Not here: there may be much to copy, or a file to be looked at.
        FileWork.queue.async {
            let data = isResumable ? self.resumeData(of: task, kept: resource) : nil
            for handler in handlers { handler(data) }
            let told = outcome.adding(data, under: NSURLSessionUploadTaskResumeData)
            self.base.settle(task, told, then: then)
        }
    }

    func handedOver() {
        self.base.handedOver()
        // An upload that was answered is not gone on with.
        let handlers = self.state.withLock { $0.requests.conclude() }
        guard !handlers.isEmpty else { return }
        FileWork.queue.async { for handler in handlers { handler(nil) } }
    }

    private func resumeData(of task: URLSessionTask, kept resource: URL?) -> Data? {
        if let resume = self.resume { return resume.encoded() }
        guard let resource, let request = task.originalRequest else { return nil }
        return UploadResumeData(request, sending: self.content, kept: resource)?.encoded()
    }

    // MARK: What it is for

    var asksForDisposition: Bool { self.base.asksForDisposition }
    var asksForStoring: Bool { self.base.asksForStoring }
    var isDirect: Bool { self.base.isDirect }
    var ownLane: DelegateLane? { self.base.ownLane }
    func relays(_ answer: LoadAnswer, of task: URLSessionTask, load: Int) -> Bool {
        self.base.relays(answer, of: task, load: load)
    }
    func keepsWhole(for task: URLSessionTask) -> Bool { self.base.keepsWhole(for: task) }
    func keep(_ body: KeptBody) { self.base.keep(body) }

    func consumer(
        of answer: LoadAnswer, for task: URLSessionTask
    ) throws(BodyConsumerError) -> any BodyConsumer {
        try self.base.consumer(of: answer, for: task)
    }

    func complete(_ task: URLSessionTask, of session: URLSession?, with error: (any Error)?) {
        self.base.complete(task, of: session, with: error)
    }
}

extension URLSessionTask {
    /// Has something else sent by the next load: a rest of what is so long, -1: not known.
    fileprivate func send(_ content: UploadBody, of length: Int64) {
        self.count { state in
            state.content = content
            state.isContentSpent = false
            state.expectedToSend = length
        }
    }
}

extension URLRequest {
    fileprivate func by(_ method: String) -> URLRequest {
        var request = self
        request.httpMethod = method
        return request
    }
}
