@testable import LarderProcess

/// Compares what came of one step with what was expected.
struct Judge {
    let trial: Trial
    let number: Int
    /// How many requests had come to the origin when the client sent its own.
    let before: Int
    let got: Trial.Got

    /// What is otherwise than expected, each in a sentence.
    func findings() -> [String] {
        var findings: [String] = []
        if let finding = self.judgeEnd() { findings.append(finding) }
        if let finding = self.judgeStatus() { findings.append(finding) }
        for expectation in self.step.expectations {
            if let finding = self.judge(expectation) { findings.append(finding) }
        }
        return findings
    }

    private var cacheStatus: String { self.got.response["Cache-Status"] ?? "none" }
    private var step: Step { self.steps[self.number - 1] }
    private var asked: [Message] { self.trial.asked(by: self.number, after: self.before) }
    private var steps: [Step] { self.trial.played.steps }

    private func judgeEnd() -> String? {
        let mayBeCut = self.step.expectations.contains { if case .cut = $0 { true } else { false } }
        guard self.got.isCut != mayBeCut else { return nil }
        return self.got.isCut ? "the answer broke off" : "the answer did not break off"
    }

    // MARK: Status

    private func judgeStatus() -> String? {
        guard let expected = self.expectedStatus, expected != self.got.response.status else {
            return nil
        }
        return "status \(self.got.response.status), not \(expected) (\(self.cacheStatus))"
    }

    /// That of the answer that must come, where nothing else is said.
    private var expectedStatus: Int? {
        var source = self.number
        for expectation in self.step.expectations {
            switch expectation {
            case .status(let code): return code
            case .source(.stored(let step)), .source(.storedAnyhow(let step)),
                .source(.validated(let step, _)):
                source = step
            default: break
            }
        }
        let answer = self.steps[source - 1].answer
        return answer.end == .refused ? nil : answer.code
    }

    // MARK: Expectations

    private func judge(_ expectation: Step.Expectation) -> String? {
        switch expectation {
        case .source(let source): self.judge(source)
        case .status, .cut: nil
        case .field, .dated, .line, .containing, .lacks, .age, .trailer, .content, .interim:
            self.judgeAnswer(expectation)
        case .cacheStatus, .cacheStatusContaining, .cacheStatusWithout:
            self.judgeCacheStatus(expectation)
        case .asked, .askedWith, .askedWithout, .askedContaining, .askedMethod:
            self.judgeAsked(expectation)
        }
    }

    private func judge(_ source: Step.Source) -> String? {
        let asked = self.asked
        switch source {
        case .stored(let step):
            guard asked.isEmpty else {
                return "the origin was asked (\(self.cacheStatus))"
            }
            return self.judgeContent(of: step)
        case .storedAnyhow(let step):
            return self.judgeContent(of: step)
        case .origin:
            guard !asked.isEmpty else { return "the origin was not asked (\(self.cacheStatus))" }
            return self.judgeContent(of: self.number)
        case .validated(let step, let field):
            guard let request = asked.first else {
                return "the origin was not asked (\(self.cacheStatus))"
            }
            guard self.trial.has(request, field) else {
                return "the origin was not asked with \(field): \(request.fields)"
            }
            return self.judgeContent(of: step)
        }
    }

    /// The content must be what the origin answered to a step, where an answer has content.
    private func judgeContent(of number: Int) -> String? {
        if self.step.method == "HEAD" || [204, 304].contains(self.got.response.status) {
            return nil
        }
        // Where a part is asked for, the case says which.
        let isSaid = self.step.expectations.contains {
            switch $0 {
            case .content, .containing: true
            default: false
            }
        }
        if isSaid || self.got.isCut { return nil }
        let answer = self.steps[number - 1].answer
        return self.judgeContent(self.trial.words.said(answer.content(ofStep: number)))
    }

    private func judgeContent(_ expected: String) -> String? {
        let text = self.got.response.text
        return text == expected
            ? nil : "content \(text.debugDescription), not \(expected.debugDescription)"
    }

    private func judgeAnswer(_ expectation: Step.Expectation) -> String? {
        let response = self.got.response
        switch expectation {
        case .field(let field):
            let (name, value) = self.trial.parts(field)
            guard response.has(name) else { return "no \(name)" }
            let list = response.list(name)
            return list == value ? nil : "\(name): \(list), not \(value)"
        case .dated:
            let date = response.list("Date")
            return self.trial.words.moments.contains(date) ? nil : "Date: \(date)"
        case .line(let line):
            let said = self.trial.words.said(line)
            return response.fields.contains(said) ? nil : "no line \(said): \(response.fields)"
        case .lacks(let name):
            return response.has(name) ? "\(name): \(response.list(name))" : nil
        case .age(let range):
            let age = response["Age"].flatMap { Int($0) }
            guard let age else { return "no Age" }
            return range.contains(age) ? nil : "Age: \(age), not in \(range)"
        case .trailer(let line):
            let said = self.trial.words.said(line)
            return response.trailers.contains(said) ? nil : "trailers \(response.trailers)"
        case .containing(let text):
            return self.judge(self.trial.words.said(text), in: response)
        case .content(let expected):
            return self.judgeContent(self.trial.words.said(expected))
        case .interim(let lines):
            let found = self.got.interims.flatMap { [$0.line] + $0.fields }
                .filter { !$0.hasPrefix("Via:") }
            return found == lines ? nil : "interim responses \(found)"
        default: return nil
        }
    }

    /// - Parameter text: a field with a part of its value, or a part of the content.
    private func judge(_ text: String, in message: Message) -> String? {
        guard text.contains(":"), !message.text.contains(text) else {
            return message.text.contains(text) ? nil : "content \(message.text.debugDescription)"
        }
        let (name, value) = self.trial.parts(text)
        let list = message.list(name)
        return list.contains(value) ? nil : "\(name): \(list), without \(value)"
    }

    private func judgeCacheStatus(_ expectation: Step.Expectation) -> String? {
        let member = self.got.response.list("Cache-Status")
        let parameters = member.components(of: ";")
        let isMet =
            switch expectation {
            case .cacheStatus(let parameter): parameters.contains(parameter)
            case .cacheStatusContaining(let text): member.contains(text)
            case .cacheStatusWithout(let name):
                !parameters.contains { $0 == name || $0.hasPrefix("\(name)=") }
            default: true
            }
        return isMet ? nil : "Cache-Status: \(member)"
    }

    private func judgeAsked(_ expectation: Step.Expectation) -> String? {
        let asked = self.asked
        if case .asked(let times) = expectation {
            return asked.count == times ? nil : "the origin was asked \(asked.count) times"
        }
        guard let request = asked.first else { return "the origin was not asked" }
        switch expectation {
        case .askedWith(let field):
            return self.trial.has(request, field)
                ? nil : "the origin was not asked with \(field): \(request.fields)"
        case .askedWithout(let name):
            return request.has(name) ? "the origin was asked with \(name)" : nil
        case .askedContaining(let text):
            return self.judge(self.trial.words.said(text), in: request)
        case .askedMethod(let method):
            return request.method == method ? nil : "the origin was asked to \(request.method)"
        default: return nil
        }
    }
}

extension String {
    /// The parts between separators, without the space around them.
    fileprivate func components(of separator: Character) -> [String] {
        self.split(separator: separator).map { part in
            String(part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
    }
}
