/// One request of a client, what the origin answers if it is asked, and what must come of it.
///
/// Field lines and paths may hold words in braces, see `Words`.
struct Step: Sendable {
    /// What a client must find of an exchange, or an origin have seen of it.
    enum Expectation: Sendable {
        case source(Source)
        case status(Int)
        /// All values of a field, as one list: `Vary: a, b`.
        case field(String)
        /// A `Date` that was made since the case began.
        case dated
        /// A field line, byte for byte.
        case line(String)
        /// The value, all lines as one list, holds this; without a colon, the content does.
        case containing(String)
        case lacks(String)
        case age(ClosedRange<Int>)
        case content(String)
        case trailer(String)
        /// Status lines and fields, without Via, of the interim responses that came before.
        case interim([String])
        /// The answer broke off before its end.
        case cut
        /// The member of `Cache-Status` has this among its parameters.
        case cacheStatus(String)
        case cacheStatusContaining(String)
        /// It has no parameter of that name.
        case cacheStatusWithout(String)
        /// The origin was asked so often by this step.
        case asked(times: Int)
        /// The origin got this field, in the step's first request to it.
        case askedWith(String)
        case askedWithout(String)
        case askedContaining(String)
        case askedMethod(String)
    }

    /// Where an answer comes from.
    enum Source: Sendable {
        /// The cache: the origin was not asked, and its answer to an earlier step comes.
        case stored(step: Int)
        /// The cache, whether the origin was asked or not.
        case storedAnyhow(step: Int)
        /// The origin: its answer to this step comes.
        case origin
        /// The stored answer to an earlier step, after the origin was asked with this field and
        /// said 304.
        case validated(step: Int, with: String)
    }

    var method: String
    /// What follows the case's own URL.
    var path: String
    var fields: [String]
    var content: String?
    var answer = Answer()
    var expectations: [Expectation] = []
    /// How often the origin must have been asked in the whole case when the step is over: until
    /// then the request is sent again.
    var leadsToRequests = 0
    /// Clients that send the request while its answer is on its way.
    var clients = 1
    /// The request is sent again until the step comes out as expected, for what happens behind a
    /// client's back.
    var isRepeated = false

    static func send(
        _ method: String, _ fields: String..., at path: String = "", content: String? = nil
    ) -> Step {
        Step(method: method, path: path, fields: fields, content: content)
    }

    static func get(_ fields: String..., at path: String = "") -> Step {
        Step(method: "GET", path: path, fields: fields)
    }

    static func head(_ fields: String..., at path: String = "") -> Step {
        Step(method: "HEAD", path: path, fields: fields)
    }

    static func post(_ fields: String..., at path: String = "", content: String = "q") -> Step {
        Step(method: "POST", path: path, fields: fields, content: content)
    }

    private func with(_ change: (inout Step) -> Void) -> Step {
        var step = self
        change(&step)
        return step
    }

    private func expecting(_ expectation: Expectation) -> Step {
        self.with { $0.expectations.append(expectation) }
    }
}

// MARK: - What the origin answers

extension Step {
    /// - Parameter content: nil is a text of the step's own.
    func answer(_ fields: String..., status: String = "200 OK", content: String? = nil) -> Step {
        self.with { step in
            step.answer.status = status
            step.answer.fields = fields
            step.answer.content = content
        }
    }

    func trailers(_ fields: String...) -> Step { self.with { $0.answer.trailers = fields } }

    /// Sends an interim response first.
    func interim(_ status: String, _ fields: String...) -> Step {
        self.with { $0.answer.interims.append(Answer.Interim(status: status, fields: fields)) }
    }

    /// The origin closes the connection without an answer.
    var isRefused: Step { self.with { $0.answer.end = .refused } }

    /// The origin announces its content and closes the connection after so many bytes of it.
    func breaksOff(after count: Int) -> Step {
        self.with { $0.answer.end = .brokenOff(after: count) }
    }

    /// Further clients send the request when the first bytes of its answer are there, and the rest
    /// comes when all have them.
    func sharedBy(_ clients: Int) -> Step { self.with { $0.clients = clients } }
}

// MARK: - What must come of it

extension Step {
    func isHit(from step: Int = 1) -> Step { self.expecting(.source(.stored(step: step))) }

    var isHit: Step { self.isHit() }

    var isForwarded: Step { self.expecting(.source(.origin)) }

    /// What is stored comes, whether the origin was asked or not.
    func isStored(from step: Int = 1) -> Step {
        self.expecting(.source(.storedAnyhow(step: step)))
    }

    /// The origin is asked with this field and says 304, and what is stored comes.
    func isValidated(by field: String, from step: Int = 1) -> Step {
        self.with { step in step.answer.notModifiedIf = field }
            .expecting(.source(.validated(step: step, with: field)))
    }

    func status(_ code: Int) -> Step { self.expecting(.status(code)) }
    func gets(_ field: String) -> Step { self.expecting(.field(field)) }
    var getsDate: Step { self.expecting(.dated) }
    func gets(containing text: String) -> Step { self.expecting(.containing(text)) }
    func gets(line: String) -> Step { self.expecting(.line(line)) }
    func gets(age: ClosedRange<Int>) -> Step { self.expecting(.age(age)) }
    func gets(content: String) -> Step { self.expecting(.content(content)) }
    func gets(trailer: String) -> Step { self.expecting(.trailer(trailer)) }
    func gets(interim lines: String...) -> Step { self.expecting(.interim(lines)) }
    var getsNoInterim: Step { self.expecting(.interim([])) }
    func lacks(_ name: String) -> Step { self.expecting(.lacks(name)) }
    var isCut: Step { self.expecting(.cut) }
    func says(_ parameter: String) -> Step { self.expecting(.cacheStatus(parameter)) }
    func says(containing text: String) -> Step {
        self.expecting(.cacheStatusContaining(text))
    }
    func saysNo(_ name: String) -> Step { self.expecting(.cacheStatusWithout(name)) }
    func asks(times: Int) -> Step { self.expecting(.asked(times: times)) }
    func asks(_ field: String) -> Step { self.expecting(.askedWith(field)) }
    func asks(without name: String) -> Step { self.expecting(.askedWithout(name)) }
    func asks(containing text: String) -> Step { self.expecting(.askedContaining(text)) }
    func asks(method: String) -> Step { self.expecting(.askedMethod(method)) }

    /// Sends the request again, after its answer was judged, until the origin has been asked so often
    /// in the whole case: what happens behind a client's back need not happen after one request.
    func leadsTo(requests: Int) -> Step { self.with { $0.leadsToRequests = requests } }

    var eventually: Step { self.with { $0.isRepeated = true } }
}
