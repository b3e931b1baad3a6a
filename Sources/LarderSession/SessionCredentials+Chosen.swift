package import LarderCredentials
import LarderHTTP
import Synchronization

/// For those who choose each credential themselves, as a program does that is asked by its delegate:
/// what was accepted is remembered, nonces are counted and answers are made as for a session of the
/// proxy, but nothing is looked up.
extension SessionCredentials {
    /// Whether no credential has been accepted yet, or all of them have been forgotten: then nothing
    /// is to be sent before anyone asks.
    package var remembersNothing: Bool { self.state.withLock { $0.spaces.isEmpty } }

    /// What was accepted before and covers the request, ready to be sent with it; uses a count of
    /// the nonce up.
    ///
    /// - Parameters:
    ///   - content: asked for where the protection that the server demands needs it.
    ///   - isHeld: whether the credential may still be used for the space; runs without a lock.
    package func preempts(
        _ request: ChallengedRequest, content: () -> [UInt8]?,
        where isHeld: (ProtectionSpace, Credential) -> Bool
    ) -> SentCredential? {
        let known = self.state.withLock { $0.spaces.covering(request.uri) }
        guard let entry = known.first(where: { isHeld($0.space, $0.credential) }) else {
            return nil
        }
        var request = request
        if entry.digest?.challenge.protections == [.authInt], request.content == nil {
            guard let content = content() else { return nil }
            request.content = content
        }
        var digest: DigestSession?
        if entry.scheme == .digest {
            digest = self.state.withLock {
                $0.spaces.reserve(
                    entry.space, entry.credential, owner: entry.owner, at: request.uri)
            }
            // Refused or pushed out a moment ago.
            guard digest != nil else { return nil }
        }
        return self.sent(
            entry.space, entry.scheme, entry.credential, request, isPreemptive: true,
            digest: digest)
    }

    /// The answer to one challenge with one credential; nil where the rules of the scheme forbid it
    /// or it cannot be expressed.
    ///
    /// - Parameter sent: what went out for this target before and counts against the answer, the last
    ///   one last.
    package func answer(
        _ challenge: Challenge, in space: ProtectionSpace, with credential: Credential,
        to request: ChallengedRequest, after sent: [SentCredential]
    ) -> SentCredential? {
        self.answer(challenge, space, credential, request, sent)
    }

    /// Forgets what was accepted for a space, but for one user's credential; nil: for anybody's.
    package func forget(_ space: ProtectionSpace, except user: String? = nil) {
        self.state.withLock { $0.spaces.forget(space, except: user) }
    }

    /// Forgets all that was accepted or refused.
    package func forgetAll() {
        self.state.withLock { $0.spaces = AcceptedSpaces() }
    }

    /// Changes what is held at once, and hands the change to the storage by itself.
    ///
    /// - Parameter change: gets the store, and gives what it says has changed and what is returned;
    ///   runs under a lock.
    package func change<R>(
        _ change: (inout CredentialStore) -> ([CredentialChange], R)
    ) -> R {
        let (mustSave, result) = self.state.withLock { state in
            let (changes, result) = change(&state.store)
            if self.storage != nil { state.pending += changes }
            state.spaces.forgetRefusals()
            self.noteHolding(state)
            return (self.storage != nil && !changes.isEmpty, result)
        }
        self.revision.wrappingAdd(1, ordering: .releasing)
        if mustSave { Task(executorPreference: HouseExecutor.shared) { await self.save() } }
        return result
    }

    /// How often what is held was changed, for `reread`.
    package var changeCount: UInt64 { self.revision.load(ordering: .acquiring) }

    /// Takes what the storage was found to hold, in the place of all permanent credentials; changes
    /// that are still on their way to the storage hold nevertheless.
    ///
    /// - Parameter count: `changeCount` before the storage was read.
    /// - Returns: false where something was changed since; nothing is done then.
    package func reread(_ kept: [CredentialChange], unchangedSince count: UInt64) -> Bool {
        self.state.withLock { state in
            guard self.changeCount == count else { return false }
            state.store.reread(kept)
            state.store.restore(state.pending)
            self.noteHolding(state)
            return true
        }
    }
}
