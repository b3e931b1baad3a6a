import CCurl
import LarderHTTP

/// How transfers are let go of.
extension TransferLoop {
    func tellFailure(
        _ fetch: CurlFetch, _ receiver: any UpstreamReceiver, _ failure: UpstreamFailure
    ) {
        guard !fetch.isCancelled else { return }
        receiver.upstream(failed: failure)
    }

    /// Takes the transfer's handle out of libcurl's hands, if it is there.
    func detach(_ transfer: Transfer) {
        guard let easy = transfer.easy else { return }
        transfer.measure(easy)
        let code = self.multi.remove(easy)
        transfer.easy = nil
        // A handle that did not come free is not used again, nor one that may have sent trailers:
        // libcurl 7.88 leaves such a handle in a state, which curl_easy_reset(3) keeps, in which
        // the next chunked content is written in front of its buffer.
        // Nor one that never got as far as a request: where the name was not resolved it keeps its
        // buffer over curl_easy_reset(3), and refuses every later CURLOPT_BUFFERSIZE.
        guard code == CURLM_OK, !transfer.mayHaveTrailers, transfer.hasBegunRequest else {
            easy.transfer = nil
            return
        }
        easy.retire(mayKeep: transfer.leavesHandleAsItWas)
        self.handles.put(easy)
    }

    /// Lets go of a transfer that has told its receiver everything, or must not tell it any more.
    func forget(_ transfer: Transfer) {
        guard self.setTransfer(transfer.fetch.id, nil) != nil else { return }
        transfer.isForgotten = true
        self.yieldPlace(transfer)
        self.leaveLookups(transfer)
        self.deadlines.leave(transfer.waiting)
        if let lifetime = transfer.lifetime { self.deadlines.leave(lifetime) }
        if let entry = transfer.contentWaiting { self.deadlines.leave(entry) }
        transfer.content?.cancel()
        self.counters.transferEnded()
        if self.transfers.isEmpty { self.idleSince = self.now }
    }
}
