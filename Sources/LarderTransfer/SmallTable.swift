/// A dictionary that mostly has one entry, which then lies beside it and is found without hashing.
///
/// A value. The order of its entries is nobody's promise.
///
/// `public`, which no product offers to anybody: of what is `package` the compiler makes no version for
/// the types of another module, and a look-up would take ten times as long as hashing.
public struct SmallTable<Key: Hashable, Value> {
    @usableFromInline var only: (key: Key, value: Value)?
    /// Those that came while `only` was there.
    @usableFromInline var others: [Key: Value] = [:]

    @inlinable
    public init() {}

    @inlinable
    public var isEmpty: Bool { self.only == nil && self.others.isEmpty }

    @inlinable
    public var count: Int { self.others.count + (self.only == nil ? 0 : 1) }

    /// The value of a key; setting nil removes it.
    @inlinable
    public subscript(_ key: Key) -> Value? {
        get {
            if let only = self.only, only.key == key { return only.value }
            return self.others.isEmpty ? nil : self.others[key]
        }
        set {
            guard let newValue else {
                self.remove(key)
                return
            }
            self.update(newValue, for: key)
        }
    }

    /// Sets a value; returns what was there before.
    @inlinable
    @discardableResult
    public mutating func update(_ value: Value, for key: Key) -> Value? {
        if let only = self.only {
            guard only.key == key else { return self.others.updateValue(value, forKey: key) }
            self.only = (key, value)
            return only.value
        }
        let former = self.others.isEmpty ? nil : self.others.removeValue(forKey: key)
        self.only = (key, value)
        return former
    }

    /// Removes a value, and returns it; nil where there is none.
    @inlinable
    @discardableResult
    public mutating func remove(_ key: Key) -> Value? {
        if let only = self.only, only.key == key {
            self.only = nil
            return only.value
        }
        return self.others.isEmpty ? nil : self.others.removeValue(forKey: key)
    }

    /// All keys with their values, as they are now.
    @inlinable
    public var entries: [(key: Key, value: Value)] {
        var entries = self.others.map { (key: $0.key, value: $0.value) }
        if let only = self.only { entries.append(only) }
        return entries
    }
}

extension SmallTable: Sendable where Key: Sendable, Value: Sendable {}
