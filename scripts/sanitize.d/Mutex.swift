import Glibc

/// Stands in for `Synchronization.Mutex` in the module that it is copied into.
///
/// That one waits by a futex(2) with priority inheritance, which the thread sanitizer does not
/// understand: it sees none of the order that the lock makes, and reports all that is under one. This
/// one lies on pthread_mutex_lock(3), which it does.
@safe struct Mutex<Value: ~Copyable>: ~Copyable {
    private let value: UnsafeMutablePointer<Value>
    private let lock: UnsafeMutablePointer<pthread_mutex_t>

    init(_ initialValue: consuming sending Value) {
        unsafe self.value = .allocate(capacity: 1)
        unsafe self.value.initialize(to: initialValue)
        unsafe self.lock = .allocate(capacity: 1)
        unsafe self.lock.initialize(to: pthread_mutex_t())
        unsafe pthread_mutex_init(self.lock, nil)
    }

    deinit {
        unsafe pthread_mutex_destroy(self.lock)
        unsafe self.lock.deallocate()
        unsafe self.value.deinitialize(count: 1)
        unsafe self.value.deallocate()
    }

    borrowing func withLock<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result {
        unsafe pthread_mutex_lock(self.lock)
        defer { unsafe pthread_mutex_unlock(self.lock) }
        return try unsafe body(&self.value.pointee)
    }

    borrowing func withLockIfAvailable<Result: ~Copyable, E: Error>(
        _ body: (inout sending Value) throws(E) -> sending Result
    ) throws(E) -> sending Result? {
        guard unsafe pthread_mutex_trylock(self.lock) == 0 else { return nil }
        defer { unsafe pthread_mutex_unlock(self.lock) }
        return try unsafe body(&self.value.pointee)
    }
}

extension Mutex: @unchecked Sendable where Value: ~Copyable {}
