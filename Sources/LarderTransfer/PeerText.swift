import LarderHTTP

/// The address and port of a peer as text, kept for the next request: most go where the last one went,
/// and to put the text together takes longer than to see that.
///
/// A class, so that no property of a loop is lent when it changes. Not `Sendable`: used on one thread.
final class PeerText {
    private var address = ""
    private var port: Int32 = 0
    private var text = ""

    func text(of address: String, port: Int32) -> String {
        if self.port != port || self.address != address || self.text.isEmpty {
            self.address = address
            self.port = port
            self.text =
                address.utf8.contains(ASCII.colon) ? "[\(address)]:\(port)" : "\(address):\(port)"
        }
        return self.text
    }
}
