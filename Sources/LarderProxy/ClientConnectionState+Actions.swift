/// The words in which the state of a connection and its driver speak.
extension ClientConnectionState {
    /// What the next bytes from the client are.
    package enum Reading: Hashable, Sendable {
        case head
        /// Content of the request being worked on.
        case content
        /// Content nobody wants, or anything at all while lingering.
        case discarded
        /// Bytes for the other end of a tunnel.
        case tunnel
        /// They belong to a later request, and wait.
        case nothing
    }

    /// What to do with the connection now.
    package enum Action: Hashable, Sendable {
        case nothing
        /// What was received may be read on: the next request, or what is left of the content.
        case readHead
        /// The answer is out, but content of its request still comes: throw that away.
        case discardContent
        /// Close the sending side, and wait a little for the client to close its own.
        case linger
        /// Close, once all that was written is sent.
        case close
        /// Close at once.
        case abort
        /// Answer 408, then end the connection.
        case answerTimeout
    }
}
