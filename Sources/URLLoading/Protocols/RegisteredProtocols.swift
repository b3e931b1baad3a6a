import Synchronization

/// The classes that `URLProtocol.registerClass` has made known to the process.
enum RegisteredProtocols {
    /// Newest first.
    private static let known = Mutex<[URLProtocol.Type]>([])

    static var all: [URLProtocol.Type] { self.known.withLock { $0 } }

    /// Puts a class in front, also one that is known.
    static func add(_ kind: URLProtocol.Type) {
        self.known.withLock { known in
            known.removeAll { $0 == kind }
            known.insert(kind, at: 0)
        }
    }

    static func remove(_ kind: AnyClass) {
        self.known.withLock { known in known.removeAll { $0 == kind } }
    }
}
