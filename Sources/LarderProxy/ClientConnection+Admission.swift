import LarderCredentials
import LarderHTTP
import LarderSession
import NIOCore

/// Who sends a request, before anything of it is acted on.
extension ClientConnection {
    private enum Admission {
        case admitted(user: String?)
        case refused(OwnAnswer)
        /// The verdict comes later: until then nothing behind the head is looked at.
        case pending
    }

    func begin(_ head: RequestHead) {
        self.loop.counters.requestBegan()
        let number = self.state.headEnded(
            hasContent: head.hasContent,
            persists: HopByHop.keepsAlive(head.fields, version: head.version),
            wantsTunnel: head.method == .connect)
        guard head.fields.has(.proxyAuthorization) else {
            self.open(number, head: head)
            return self.act(on: self.admission(with: [], number: number), head)
        }
        // They are in its bytes, which are not to be kept.
        self.arrival = nil
        let credentials = head.fields.values(FieldName(.proxyAuthorization))
        // Neither the session nor the log gets to see them.
        let head = head.withoutProxyAuthorization
        self.open(number, head: head)
        self.act(on: self.admission(with: credentials, number: number), head)
    }

    private func act(on admission: Admission, _ head: RequestHead) {
        switch admission {
        case .admitted(let user):
            self.standing.become(user, listener: self.listener)
            self.exchange?.user = user
            self.proceed(head)
        case .refused(let answer):
            self.refuse(head, with: answer)
        case .pending:
            self.state.contentHeld()
        }
    }

    private func admission(with credentials: [FieldValue], number: UInt64) -> Admission {
        guard let authenticator = self.listener.authentication else { return .admitted(user: nil) }
        guard credentials.count < 2 else { return .refused(.repeatedCredentials) }
        let value = credentials.first
        if value == nil, self.client.isUnix, !self.listener.authenticatesUnixPeers {
            return .admitted(user: nil)
        }
        // Before the check: a change while it goes on makes its verdict old.
        let generation = authenticator.generation
        if let value, let user = self.standing.user(of: value, generation: generation) {
            return .admitted(user: user)
        }
        guard let bound = self.bound else { return .refused(.verificationBusy) }
        self.exchange?.credentials = value.map { Secret(Array($0)) }
        let client = ConnectionClient(
            connection: bound, number: number, mail: self.loop.mail(to: bound.eventLoop))
        let verdict = authenticator.check(value, client: self.client) { verdict in
            client.judged(verdict, generation: generation)
        }
        return self.admission(by: verdict, generation: generation)
    }

    private func admission(
        by verdict: AuthenticationVerdict, generation: UInt64
    ) -> Admission {
        if verdict == .pending { return .pending }
        let credentials = self.exchange?.credentials
        self.exchange?.credentials = nil
        switch verdict {
        case .known(let user):
            if let credentials {
                self.standing.verified(credentials, generation: generation, user: user)
            }
            return .admitted(user: user)
        case .missing:
            return .refused(self.authenticationRequired("the proxy wants to know who asks"))
        case .refused:
            return .refused(self.authenticationRequired("the credentials are not accepted"))
        case .throttled(let time):
            return .refused(.throttled(time))
        case .busy, .pending:
            return .refused(.verificationBusy)
        }
    }

    private func authenticationRequired(_ detail: String) -> OwnAnswer {
        .authenticationRequired(self.listener.authentication?.challenges ?? [], detail: detail)
    }

    /// The verdict that a request waited for.
    func judged(_ verdict: AuthenticationVerdict, generation: UInt64, number: UInt64) {
        guard let exchange = self.exchange, exchange.number == number, let head = exchange.head,
            self.state.contentReleased()
        else { return }
        // As if the head had only now been read: what an answer from inside `perform` lets begin
        // is begun by the loop below.
        self.isAdvancing = true
        // A second `.pending` would never be followed by a verdict.
        self.act(
            on: verdict == .pending
                ? .refused(.verificationBusy)
                : self.admission(by: verdict, generation: generation),
            head)
        self.isAdvancing = false
        self.advance()
        self.settle()
    }

    /// Answers a request without looking at its content, which is thrown away.
    func refuse(_ head: RequestHead, with answer: OwnAnswer) {
        if head.hasContent {
            self.expectContent(of: head, feed: nil, clientWaits: Self.mayWait(head))
            self.state.contentAbandoned()
        }
        self.respond(answer)
    }

    private static func mayWait(_ head: RequestHead) -> Bool {
        head.version >= .http11 && head.fields.contains(FieldName(.expect))
    }
}

extension RequestHead {
    /// Whether any byte of content follows.
    var hasContent: Bool { self.bodyLength != .none && self.bodyLength != .known(0) }

    /// The head in a buffer in which no credentials for the proxy are left: a line that is removed
    /// leaves its bytes.
    fileprivate var withoutProxyAuthorization: RequestHead {
        var head = self
        head.fields = Fields()
        for line in self.fields.lines where line.known != .proxyAuthorization {
            head.fields.append(line, of: self.fields)
        }
        return head
    }
}
