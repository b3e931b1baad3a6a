import LarderEngine
import LarderState
import Synchronization

/// The storages of this process that are kept: one object each.
enum SharedCookieStorages {
    enum Name: Hashable {
        case own
        case group(String)

        /// Of the state in which the cookies are kept.
        fileprivate var state: String {
            switch self {
            case .own: ".cookies.shared"
            case .group(let identifier): KeptPlace.name(ofGroup: identifier)
            }
        }
    }

    private static let storages = Mutex<[Name: HTTPCookieStorage]>([:])

    static func storage(_ name: Name) -> HTTPCookieStorage {
        if let known = self.storages.withLock({ $0[name] }) { return known }
        // Not under the lock, as it looks at files; of two that are made at once one is dropped.
        let made = HTTPCookieStorage(CookieStore(KeptPlace.shared(named: name.state)))
        let storage = self.storages.withLock { storages in
            let storage = storages[name] ?? made
            storages[name] = storage
            return storage
        }
        if storage === made { storage.store.finishAtExit() }
        return storage
    }
}
