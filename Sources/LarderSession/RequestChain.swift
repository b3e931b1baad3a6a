import LarderCredentials
import LarderHTTP
import LarderPolicy

/// The way to origins by which a session takes part in its exchanges: it sends what it seals, keeps
/// the cookies that come, answers challenges and follows redirections.
///
/// Between a fetch and the real upstream. A request that nothing is sealed in goes straight through.
final class RequestChain: Upstream {
    let upstream: any Upstream
    let conduct: SessionConduct
    let clock: any WallClock
    let timers: any Timers

    init(
        _ upstream: any Upstream, conduct: SessionConduct, clock: any WallClock,
        timers: any Timers
    ) {
        self.upstream = upstream
        self.conduct = conduct
        self.clock = clock
        self.timers = timers
    }

    var dialer: (any TunnelDialer)? { self.upstream.dialer }

    func fetch(
        _ request: Request, body: (any BodySource)?, receiver: any UpstreamReceiver
    ) -> any UpstreamFetch {
        guard let sealed = request.sealed else {
            return self.upstream.fetch(request, body: body, receiver: receiver)
        }
        let fetch = ChainedFetch(
            self, request: request, sealed: sealed, body: body, receiver: receiver)
        fetch.start()
        return fetch
    }
}

/// Where a chain of requests has come to: what the next one is to be.
struct ChainCourse: Sendable {
    /// What the client asked for.
    let first: TargetURI
    var uri: TargetURI
    var method: Method
    var hasContent: Bool
    /// How many redirections led here.
    var number = 0
    /// Requests sent so far, for all targets.
    var sends = 0
    /// A redirection led to another origin than the client's, now or before.
    var hasLeft = false
    /// One led to another server than the client's, now or before.
    var hasBeenElsewhere = false
    /// One led from https to http.
    var isDowngraded = false
    /// A redirection said that it must not be stored, or not in a shared cache.
    var forbidsStoring = false
    var isPrivate = false
    /// One set cookies, which the session took, or which cannot reach the client.
    var setsCookies = false
    /// What redirections say that they vary by.
    var vary: [[UInt8]] = []
    /// What unsafe requests that were redirected have changed (RFC 9111 §4.4).
    var changed: [TargetURI] = []
    /// What the redirections led to.
    var ledTo: [TargetURI] = []
    /// The last one leads where the client may not go.
    var isRefused = false
    /// The origin fulfils no expectations (417).
    var refusesExpectation = false

    init(_ request: Request) {
        self.first = request.uri
        self.uri = request.uri
        self.method = request.method
        self.hasContent = request.bodyLength != .none
    }

    /// Whether it has come to another server than the one that the client asked, be it by https now.
    var isElsewhere: Bool {
        let (first, now) = (self.first, self.uri)
        let isUsual =
            first.port == first.scheme.defaultPort && now.port == now.scheme.defaultPort
        return first.host != now.host || (first.port != now.port && !isUsual)
    }

    /// Notes what goes out for the session's own secrets.
    ///
    /// What they bring from beyond another server is nobody else's, though it is stored under the URI
    /// of the first: that one's origin has chosen what they were used for.
    mutating func sends(secrets: Bool) {
        self.sends += 1
        if secrets, self.hasBeenElsewhere { self.isPrivate = true }
    }

    /// - Parameter policy: that of the request that the client made, under whose URI the answer is
    ///   stored.
    mutating func follow(
        _ target: Redirection.Target, of head: ResponseHead, by policy: PolicyConfiguration
    ) {
        let control = ResponseDirectives(head.fields, configuration: policy).control
        self.forbidsStoring = self.forbidsStoring || control.noStore
        self.isPrivate = self.isPrivate || control.isPrivate
        self.setsCookies = self.setsCookies || head.setsCookies
        for value in head.fields.values(FieldName(.vary)) where !self.vary.contains(Array(value)) {
            self.vary.append(Array(value))
        }
        if !self.method.isSafe { self.noteChange(by: target) }
        if !target.uri.hasSameOrigin(as: self.uri) { self.hasLeft = true }
        if self.uri.scheme == .https, target.uri.scheme == .http { self.isDowngraded = true }
        self.uri = target.uri
        if self.isElsewhere { self.hasBeenElsewhere = true }
        self.ledTo.append(target.uri)
        self.method = target.method
        if target.dropsContent { self.hasContent = false }
        self.number += 1
    }

    /// A redirection is no error: what it was asked of has changed, and what it names at the same
    /// origin may have.
    private mutating func noteChange(by target: Redirection.Target) {
        for uri in [self.uri, target.uri]
        where uri.hasSameOrigin(as: self.uri) && !self.changed.contains(uri) {
            self.changed.append(uri)
        }
    }

    /// What has changed when an answer has come in the end.
    func changed(after status: StatusCode) -> [TargetURI] {
        guard !self.method.isSafe, self.number > 0, status.isSuccessful || status.isRedirection,
            !self.changed.contains(self.uri)
        else { return self.changed }
        return self.changed + [self.uri]
    }
}

/// The next request of a chain, with what it tells about itself.
struct ChainStep: Sendable {
    var request: Request
    var sent: SentCredential?
    /// The field in which it bears a credential of the session's, and what stands for that in digests.
    var credential: (name: String, identity: [UInt8])?
    /// As it differs from the request that was handed over, for who stores the answer.
    var answered: Fields?
    var refusal: UpstreamFailure?
    var acts: [SessionAct] = []
}

extension RequestChain {
    /// Makes the next request.
    ///
    /// - Parameter answer: the credential that a challenge asked for.
    func step(
        _ handed: Request, _ sealed: SealedFields, _ course: ChainCourse,
        answer: SentCredential?, at now: Timestamp
    ) -> ChainStep {
        var step = ChainStep(request: handed, refusal: sealed.refusal)
        step.request.sealed = nil
        step.request.uri = course.uri
        step.request.method = course.method
        if !course.hasContent { step.request.bodyLength = .none }
        step.request.fields =
            course.sends == 0
            ? sealed.unsealing(handed.fields) : self.fields(handed, sealed, course, at: now)
        self.addCredential(&step, sealed, course, answer: answer)
        step.answered = self.answered(step, handed, course)
        return step
    }

    /// The fields of a request behind the first one.
    private func fields(
        _ handed: Request, _ sealed: SealedFields, _ course: ChainCourse, at now: Timestamp
    ) -> Fields {
        var fields = handed.fields
        for name in sealed.names { fields.remove(name) }
        if course.hasLeft {
            for name in [
                KnownField.authorization, .cookie, .proxyAuthorization,
            ] { fields.remove(FieldName(name)) }
        } else if self.conduct.cookies != nil {
            for line in sealed.client.lines where line.known == .cookie {
                fields.append(line, of: sealed.client)
            }
        }
        if course.isDowngraded { fields.remove(FieldName(.referer)) }
        if handed.bodyLength != .none, !course.hasContent {
            for name in [
                FieldName(.contentType), FieldName(.contentEncoding), FieldName(.contentLanguage),
                FieldName(.contentLocation), FieldName(.contentLength), "Content-Digest", "Digest",
            ] { fields.remove(name) }
        }
        guard !course.method.isEchoed else {
            fields.remove(FieldName(.cookie))
            return fields
        }
        self.conduct.cookies?.addCookies(
            to: &fields, for: self.hop(handed, sealed, course), at: now)
        return fields
    }

    /// The present request, as cookies look at it.
    func hop(_ handed: Request, _ sealed: SealedFields, _ course: ChainCourse) -> Hop {
        Hop(
            method: course.method, uri: course.uri, client: sealed.client, number: course.number,
            first: handed.uri, cookies: handed.cookies)
    }

    /// The plan for the present target.
    func plan(_ sealed: SealedFields, _ course: ChainCourse) -> CredentialPlan {
        self.conduct.rules.plan(
            for: course.uri, course.method,
            hasOwn: sealed.client.contains(FieldName(.authorization)), hasLeft: course.hasLeft,
            isElsewhere: course.isElsewhere, isDowngraded: course.isDowngraded)
    }

    private func addCredential(
        _ step: inout ChainStep, _ sealed: SealedFields, _ course: ChainCourse,
        answer: SentCredential?
    ) {
        let plan = self.plan(sealed, course)
        switch plan {
        case .clients: break
        case .none(let placeholder, let act):
            if let placeholder { step.request.fields.remove(placeholder) }
            if let act { step.acts.append(act) }
        case .refuses(let failure):
            step.refusal = failure
        case .injects(let name, let value):
            step.request.fields.remove(FieldName(name))
            step.request.fields.append(name, value.revealed)
            step.credential = (name, value.revealed)
            step.acts.append(.credentialInjected)
        case .answers, .answersFromStore:
            step.request.fields.remove(FieldName(.authorization))
            let asked = self.asked(course, plan, content: course.hasContent ? nil : [])
            guard let sent = answer ?? self.conduct.rules.credentials?.preempts(asked) else {
                self.expectChallenge(&step, course, asked)
                return
            }
            if answer == nil { step.acts.append(.credentialPreempted) }
            step.sent = sent
            step.credential = ("Authorization", sent.identity)
            switch sent.form {
            case .field(let value):
                step.request.fields.append("Authorization", value.revealed)
            case .connection(let handshake): step.request.connectionAuthentication = handshake
            }
        }
    }

    /// Has the origin challenge before it gets content that could not be sent a second time.
    private func expectChallenge(
        _ step: inout ChainStep, _ course: ChainCourse, _ asked: ChallengedRequest
    ) {
        guard course.hasContent, !course.refusesExpectation,
            !RepeatableBody.keeps(step.request.bodyLength),
            self.conduct.rules.credentials?.mayAnswer(asked) == true
        else { return }
        step.request.expectsContinue = true
    }

    /// The present target, as credentials look at it.
    func asked(
        _ course: ChainCourse, _ plan: CredentialPlan, content: [UInt8]?
    ) -> ChallengedRequest {
        var asked = ChallengedRequest(method: course.method, uri: course.uri, content: content)
        if case .answers(let named) = plan { asked.named = named }
        return asked
    }

    // MARK: What an answer varies by

    /// The lines of `Cookie`, `Authorization` and the field of a credential that a stored answer varies
    /// by; nil where they are those of the request that was handed over.
    ///
    /// What the first target was asked with always counts, as it may have led to the others.
    private func answered(
        _ step: ChainStep, _ handed: Request, _ course: ChainCourse
    ) -> Fields? {
        let place = course.number == 0 ? "" : "\(course.number) \(course.uri.authority) "
        var answered = Fields()
        let credential = step.credential.map { name, identity in
            (FieldName(name), self.conduct.sealer.value(place + name.lowercased(), identity))
        }
        if course.sends == 0, self.isAsPrepared(credential, step, handed) { return nil }
        self.addCookies(to: &answered, step, handed, course, place)
        if let (name, value) = credential { answered.append(name.lowercased, value) }
        let authorization = FieldName(.authorization)
        let bears = course.number > 0 || step.request.fields.contains(authorization)
        if bears, credential?.0 != authorization {
            Self.copy(.authorization, of: handed.fields, to: &answered)
        }
        return answered
    }

    /// Whether the first request bears what it was prepared with: credentials and rules may have changed
    /// since.
    private func isAsPrepared(
        _ credential: (FieldName, [UInt8])?, _ step: ChainStep, _ handed: Request
    ) -> Bool {
        let authorization = FieldName(.authorization)
        if let (name, value) = credential {
            let values = handed.fields.values(name).map { Array($0) }
            return handed.isAuthorized && values == [value]
        }
        return step.request.fields.contains(authorization) == handed.fields.contains(authorization)
    }

    /// Cookies of another target are never equal to those of the first, as they say nothing about what
    /// the target will be asked with next time.
    private func addCookies(
        to answered: inout Fields, _ step: ChainStep, _ handed: Request, _ course: ChainCourse,
        _ place: String
    ) {
        guard self.conduct.cookies != nil, course.sends > 0 else {
            return Self.copy(.cookie, of: handed.fields, to: &answered)
        }
        let cookies = step.request.fields.values(FieldName(.cookie)).map { Array($0) }
        guard !cookies.isEmpty || course.number > 0 else { return }
        answered.append(
            "Cookie",
            self.conduct.sealer.value(place + "cookie", Array(cookies.joined(separator: [0]))))
    }

    private static func copy(_ name: KnownField, of fields: Fields, to others: inout Fields) {
        for line in fields.lines where line.known == name { others.append(line, of: fields) }
    }
}
