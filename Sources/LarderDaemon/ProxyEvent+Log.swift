import LarderProxy
import Logging

extension ProxyEvent {
    /// Writes it to the log, with what can be done about it.
    func record(to log: Logger) {
        switch self {
        case .acceptingPaused(let address, let cause, let count):
            log.error(
                "no connection can be accepted: they wait",
                metadata: [
                    "remedy": "raise the limit of open files, or lower limits.connections",
                    "listener": "\(address)", "cause": "\(cause)", "count": "\(count)",
                    "from-now-on": "counted only, for an hour",
                ])
        case .clientRefused(let address, let client, let count):
            log.warning(
                "a client has as many connections as it may: further ones are closed",
                metadata: [
                    "remedy": "raise limits.connections-per-client, or see what the client does",
                    "listener": "\(address)", "client": "\(client)", "count": "\(count)",
                    "from-now-on": "counted only, for an hour",
                ])
        case .crowded(let connections, let waited):
            log.warning(
                "as many clients are connected as may be: idle ones are closed, further ones wait",
                metadata: [
                    "remedy": "raise limits.connections, or see what the clients do",
                    "connections": "\(connections)", "waited": "\(waited)",
                    "from-now-on": "counted only, until it is over, or for an hour",
                ])
        case .crowdOver(let waited):
            log.notice("clients can be connected at once again", metadata: ["waited": "\(waited)"])
        case .acceptFailed(let address, let cause):
            log.error(
                "a listener failed", metadata: ["listener": "\(address)", "cause": "\(cause)"])
        case .listenerLost(let address):
            log.error(
                "a listener was closed; it is opened again", metadata: ["listener": "\(address)"])
        case .listenerReopened(let address):
            log.notice("a listener is open again", metadata: ["listener": "\(address)"])
        case .listenerNotReopened(let error):
            log.error(
                "a listener cannot be opened again; it is tried each second",
                metadata: ["cause": "\(error)"])
        }
    }
}
