import LarderHTTP

extension TransferLoop {
    /// The content of a request, ready to be pulled; nil where there is none.
    func content(of order: FetchOrder) -> RequestContent? {
        guard let source = order.content else { return nil }
        switch order.request.bodyLength {
        case .none, .known(0):
            source.cancel()
            return nil
        case .known, .unknown:
            let fetch = order.fetch
            let length = order.request.bodyLength
            let isKept = self.mayBeChallenged(order.request)
            // What is too long to be kept waits until the parent wants no login for it any more.
            let waits = isKept && !RequestContent.canKeep(length)
            return RequestContent(
                source, length: length, isWithheld: order.request.expectsContinue || waits,
                isKept: isKept
            ) { fetch.contentReady() }
        }
    }

    /// Whether the content may have to be sent twice: to a parent that is to say first how it wants
    /// the login, and to whom libcurl sends the whole request to hear it.
    ///
    /// With one scheme alone it asks without content instead. So it does to a parent that is known to ask for
    /// Digest, with what could not be sent twice.
    private func mayBeChallenged(_ request: Request) -> Bool {
        let way = Way(to: request.uri, isDial: false, self.configuration.parents)
        guard way.isRelay, let parent = way.parent, parent.authentication == .any,
            request.transfer.proxyAuthorization == nil
        else { return false }
        return RequestContent.canKeep(request.bodyLength)
            || !self.asksForDigest(parent, for: request.uri)
    }
}
