import LarderEngine
import LarderState
import Synchronization

/// The storages of this process that are kept, by name: one object each.
enum SharedCookieStorages {
    private static let storages = Mutex<[String: HTTPCookieStorage]>([:])

    static func storage(named name: String) -> HTTPCookieStorage {
        if let known = self.storages.withLock({ $0[name] }) { return known }
        // Not under the lock, as it looks at files; of two that are made at once one is dropped.
        let made = HTTPCookieStorage(
            CookieStore(KeptPlace.shared(named: ".cookies.\(name)")))
        let storage = self.storages.withLock { storages in
            let storage = storages[name] ?? made
            storages[name] = storage
            return storage
        }
        if storage === made { storage.store.finishAtExit() }
        return storage
    }
}
