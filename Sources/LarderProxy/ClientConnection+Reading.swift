import LarderHTTP
import LarderSession
import NIOCore

/// From bytes to requests and their content.
extension ClientConnection {
    /// Understands as much of what was received as the state allows.
    ///
    /// A loop and not a recursion: an answer that comes from inside `perform` lets the next request
    /// be read, and a client may have sent hundreds ahead.
    func advance() {
        guard !self.isAdvancing else { return }
        self.isAdvancing = true
        while self.context != nil, !self.isClosing {
            let hasProgressed: Bool
            switch self.state.reading {
            case .head: hasProgressed = self.readHead()
            case .content, .discarded: hasProgressed = self.readContent()
            case .tunnel, .nothing: hasProgressed = false
            }
            guard hasProgressed else { break }
        }
        self.isAdvancing = false
        // An idle connection holds no buffer.
        if self.inbound.readableBytes == 0 { self.inbound = ByteBuffer() }
    }

    private func readHead() -> Bool {
        // Answers to requests sent ahead must not pile up before a client that does not read.
        guard self.context != nil, self.isWritable else { return false }
        guard self.inbound.readableBytes > 0 else { return self.inputExhausted() }
        do throws(HeadError) {
            guard let head = try self.parseHead() else {
                self.isMidHead = true
                if self.inbound.readableBytes > 0 || self.parser.isMidHead {
                    self.state.headBegan()
                }
                return self.inputExhausted()
            }
            self.isMidHead = false
            self.begin(head)
            return true
        } catch {
            self.refuseHead(OwnAnswer(error))
            return false
        }
    }

    private func parseHead() throws(HeadError) -> RequestHead? {
        if let understood = self.understood {
            self.inbound = ByteBuffer()
            return understood.head
        }
        var inbound = self.takeInbound()
        defer { self.inbound = inbound }
        var head = try self.parser.parse(&inbound)
        if head?.userInfo != nil {
            do throws(HeadError) {
                try head?.takeLogin()
            } catch {
                self.parser.refused = head
                throw error
            }
        }
        return head
    }

    /// Takes out what was received, to be put back changed: while a property is lent to a function, each
    /// use of it has to be checked at run time (Tests/Benchmarks/NOTES.md, Counting).
    func takeInbound() -> ByteBuffer { Swift.exchange(&self.inbound, with: ByteBuffer()) }

    private func inputExhausted() -> Bool {
        if !self.state.takesInput { self.apply(self.state.inputExhausted()) }
        return false
    }

    /// Answers what is no request; nothing after it can be understood.
    private func refuseHead(_ answer: OwnAnswer) {
        let number = self.state.headEnded(hasContent: false, persists: false)
        self.open(number, head: self.parser.refused)
        self.respond(answer)
    }

    /// Takes content off the buffer: to its reader, or away.
    private func readContent() -> Bool {
        guard let upload = self.upload else { return false }
        if self.state.reading == .content, upload.isPaused { return false }
        do throws(HeadError) {
            switch try self.decode(upload) {
            case .needMore:
                if !self.state.takesInput { self.contentRanOut() }
                return false
            case .piece(let piece):
                return self.take(piece, of: upload)
            case .end(let trailers):
                // The state first: the reader may answer from inside its wake.
                self.exchange?.requestBodyBytes = upload.received
                self.upload = nil
                let action = self.state.contentEnded()
                upload.feed?.end(trailers: trailers)
                self.apply(action)
                return true
            }
        } catch {
            self.contentFailed(error.detail, answer: OwnAnswer(error))
            return false
        }
    }

    private func decode(_ upload: Upload) throws(HeadError) -> ChunkedDecoder.Step {
        var (upload, inbound) = (upload, self.takeInbound())
        defer { (self.upload, self.inbound) = (upload, inbound) }
        return try upload.decode(&inbound)
    }

    /// The client has ended its side, and bytes are missing: no more of them come.
    private func contentRanOut() {
        if self.state.reading == .content {
            self.contentFailed("the client ended its content early", answer: .contentIncomplete)
        } else {
            self.apply(self.state.discardingEnded())
        }
    }

    private func take(_ piece: ByteBuffer, of upload: Upload) -> Bool {
        self.timer.hasProgressed = true
        let count = UInt64(clamping: piece.readableBytes)
        self.upload?.clientWaits = false
        guard self.state.reading == .content, let feed = upload.feed else {
            self.upload?.discarded += count
            if !self.discardsMore, !self.state.awaitsAnswer, !self.state.isSending {
                // More than a kept connection is worth.
                self.apply(self.state.discardingEnded())
                return false
            }
            return self.discardsMore
        }
        self.upload?.received += count
        if let most = self.configuration.maximumRequestBody?.bytes, upload.received + count > most {
            self.contentFailed("the content is larger than is taken", answer: .contentTooLarge)
            return false
        }
        // The reader may answer from inside its wake; then nobody will say when to go on.
        if !feed.push(piece), self.state.reading == .content { self.upload?.isPaused = true }
        return true
    }

    /// Nobody reads the content any more; what still comes is thrown away, without waiting for anybody.
    ///
    /// - Returns: the feed that it went to.
    func abandonUpload() -> BodyFeed? {
        guard var upload = self.upload else { return nil }
        let feed = upload.feed.take()
        upload.isPaused = false
        self.upload = upload
        return feed
    }

    /// Whether unwanted content is still taken off the socket.
    var discardsMore: Bool {
        guard let upload = self.upload else { return false }
        return upload.discarded <= self.configuration.discardLimit.bytes
    }

    /// A session's reader of the request's content wants something.
    func contentSignalled(_ signal: BodyFeed.Signal, number: UInt64) {
        guard self.state.exchangeNumber == number, self.upload != nil else { return }
        switch signal {
        case .wanted:
            guard self.upload?.clientWaits == true, self.state.awaitsAnswer else { return }
            self.upload?.clientWaits = false
            self.timer.hasProgressed = true
            self.write(ByteBuffer(staticString: "HTTP/1.1 100 Continue\r\n\r\n"))
        case .roomAgain:
            self.upload?.isPaused = false
        case .abandoned:
            _ = self.abandonUpload()
            self.state.contentAbandoned()
        }
        self.advance()
        self.settle()
    }

    /// The content broke off or broke its framing: its reader hears of it, and the client too where
    /// no answer has begun.
    func contentFailed(_ detail: String, answer: OwnAnswer) {
        let feed = self.upload?.feed
        let action = self.state.contentBroke()
        self.upload = nil
        if self.state.awaitsAnswer {
            let handle = self.exchange?.handle
            self.exchange?.handle = nil
            self.respond(answer, failure: detail)
            handle?.cancel()
        }
        feed?.fail(.client(detail))
        self.apply(action)
    }
}
