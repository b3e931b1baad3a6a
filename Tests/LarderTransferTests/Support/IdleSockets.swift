import Testing

@testable import LarderTransfer

extension SocketPoller {
    /// Has a plain connection lie idle behind an exchange, as libcurl does.
    func rest(_ socket: Int32, isLoopback: Bool = false) {
        let (input, remove): (Int32, Int32) = (1, 4)  // CURL_POLL_IN, CURL_POLL_REMOVE
        self.note(socket, isPlain: true, isLoopback: isLoopback)
        #expect(self.watch(socket, input, isHeld: false, isHTTP1: false))
        #expect(self.watch(socket, remove, isHeld: false, isHTTP1: false))
    }
}
