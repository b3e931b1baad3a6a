import LarderHTTP
import LarderPolicy
import LarderStore
import NIOCore

/// What a fetch comes to, and what those get who wait for it.
extension Filling {
    /// The head of a response that is on its way in.
    struct Response: Sendable {
        /// As the origin sent it: what goes to the client is made of it for the one that led to it.
        var head: ResponseHead
        var receivedAt: Timestamp
        var bodyLength: BodyLength
        /// What is announced: for an answer without content, what the origin announced itself.
        var announcedLength: BodyLength
        /// The stored form, where the response may answer others than the client that led to it.
        var shared: StoredHead?
        /// Of a 206, the same: what is stored of it, whose one range is what arrives.
        var part: StoredHead?
        /// The response goes into the store.
        var isStored: Bool
        var reason: PolicyReason?
        var origin: NextHop
        /// All of the content, where it came with the head: then nobody gets a reader.
        var content: ByteBuffer?

        /// Whether others than the client that led to it may have it.
        var isShared: Bool { self.shared != nil || self.part != nil }

        /// The rule by which it is not stored.
        var whyNotStored: PolicyReason? {
            !self.isShared || self.reason?.isStores == true ? self.reason : nil
        }
    }

    /// An answer from a stored response and from bytes that are on their way in.
    struct Spliced: Sendable {
        /// The stored response, its head combined with the new one.
        var object: StoredObject
        /// Its head with what is withheld of the new one: for the client that led to it, and nobody
        /// else; nil where there is nothing of the kind.
        var own: StoredHead?
        var answer: Splice.Answer
        /// What arrives.
        var part: PartialContent.Part
        /// The status of the response that brings the missing bytes.
        var status: StatusCode
        /// What arrives goes into the store.
        var isStored: Bool
        var origin: NextHop
    }

    /// An answer from the store after all.
    struct Stored: Sendable {
        var object: StoredObject
        /// Its head with the cookies of the 304: for the client that led to it, and nobody else; nil
        /// where it has none.
        var own: StoredHead?
        /// The origin has said that it still holds.
        var isValidated: Bool
        /// What the origin answered; nil where it did not.
        var status: StatusCode?
        var reason: PolicyReason?
        /// What went wrong on the way to the origin, where the response stands in for that.
        var failure: ProxyStatus?
        /// Whom the request was sent to, or was to be.
        var origin = NextHop()
    }

    /// What a fetch has come to, as far as those who wait for a head are concerned.
    enum Outcome: Sendable {
        /// The origin's own answer; the body is in the filling.
        case response(Response)
        /// A stored response, and what the fetch brings of the bytes that it lacks.
        case spliced(Spliced)
        /// A stored response: validated, or stale and allowed because the origin failed.
        case stored(Stored)
        case failed(ExchangeFailure)

        /// Whether it is a failure that those would meet, too, who made the same request once more.
        var isFailureOfAll: Bool {
            if case .failed(let failure) = self { failure.isOfAll } else { false }
        }
    }

    /// Missing bytes of a stored response.
    struct Gap: Sendable {
        let object: ObjectID
        let splice: Splice

        init(_ splicing: Fetch.Splicing) {
            self.object = splicing.object.id
            self.splice = splicing.splice
        }

        func isSame(as other: Gap) -> Bool {
            self.object == other.object && self.splice.sharesGap(with: other.splice)
        }
    }

    /// What a filling is for that is not for the whole.
    enum Part: Sendable {
        case gap(Gap)
        /// What was asked for of a representation of which nothing is stored.
        case range(ByteRange)

        func isSame(as other: Part) -> Bool {
            switch (self, other) {
            case (.gap(let one), .gap(let other)): one.isSame(as: other)
            case (.range(let one), .range(let other)): one == other
            case (.gap, .range), (.range, .gap): false
            }
        }
    }

    /// How far it has come, for those who want a part of it.
    enum Arrival {
        case awaited
        case arriving(Response, received: UInt64, isPaused: Bool)
        /// There is nothing to be had from it by reading.
        case over
    }

    /// What `join` found.
    enum Joined {
        /// The waiter will hear the outcome.
        case waiting
        /// The outcome is known; a reader where it has a body.
        case known(Outcome, FillingReader?)
        /// Too late: the beginning of the body is gone.
        case tooLate
    }
}

/// A client that waits for a head.
protocol FillingWaiter: AnyObject, Sendable {
    /// Called once, on the fetch's thread; must not block.
    ///
    /// - Parameters:
    ///   - reader: to be read or cancelled; nil where there is no body for this client.
    ///   - leads: the client's own request is the one that went to the origin.
    func filling(settled outcome: Filling.Outcome, reader: FillingReader?, leads: Bool)
    /// The head of another's fetch has not come in time: it is waited for no longer. Any thread.
    func fillingIsSlow()
}

extension FillingWaiter {
    func fillingIsSlow() {}
}

/// What a filling may ask of its fetch.
///
/// Any thread; never called while the filling is locked.
protocol FillingControl: AnyObject, Sendable {
    func resume()
    /// The last client has left.
    func deserted()
    /// All clients, which wait for the head, may have gone.
    func doubted()
    /// The sink, which has taken the bytes below `written`, alone keeps the origin waiting.
    func heldUpBySink(at written: UInt64)
    /// Clients that lag keep the origin waiting, while others have all that came.
    func heldUpByClients()
}

extension Filling.Stored {
    /// A stored response that stands in for the answer of a broken origin (RFC 9111 §4.2.4).
    ///
    /// - Parameter uri: what was asked for.
    init(
        _ object: StoredObject, because reason: PolicyReason, for status: StatusCode,
        from origin: NextHop, at uri: TargetURI
    ) {
        self.init(
            object: object, isValidated: false, status: status, reason: reason,
            failure: ProxyStatus(
                nextHop: origin.isParent ? origin.name : uri.host, receivedStatus: status),
            origin: origin)
    }

    /// One that stands in where there is no answer.
    init(
        _ object: StoredObject, because reason: PolicyReason, for failure: UpstreamFailure,
        at uri: TargetURI
    ) {
        let hop = failure.hop ?? NextHop(of: uri)
        self.init(
            object: object, isValidated: false, status: nil, reason: reason,
            failure: ProxyStatus(
                error: failure.kind.errorType, nextHop: hop.name,
                receivedStatus: failure.receivedStatus, details: failure.detail),
            origin: hop)
    }
}
