/// Who has asked for something that goes on without him.
package struct Requester: Sendable, Equatable {
    /// As the access log writes it: an IP address, or `unix:1000`.
    package var address: String
    /// The user of this machine, over a Unix socket.
    package var uid: UInt32?
    /// The name that he has proved to the proxy.
    package var user: String?

    package init(address: String, uid: UInt32? = nil, user: String? = nil) {
        self.address = address
        self.uid = uid
        self.user = user
    }
}
