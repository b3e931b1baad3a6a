import LarderLMDB

/// The sealing of all records anew, with another key, in one transaction.
///
/// A record's place depends on the key, too, so that each is read, removed, and stored again. Old
/// pages that nothing was written over yet still hold what the old key opens: who has that key and the
/// disk can read it until they are used again.
struct StateRotation {
    let storage: StateStorage
    let old: RecordSeal
    let key: StateKey

    struct Outcome {
        var seal: RecordSeal
        var records: Int
    }

    /// Throws where records do not open: nothing is changed then.
    func perform(path: String) throws(StateError) -> Outcome {
        let (meta, seal) = StateMeta.make(for: self.key)
        let plan = try self.plan(for: seal, path: path)
        if plan.unreadable > 0 {
            throw StateError(
                .damaged, path: path,
                cause: "\(plan.unreadable) records do not open and cannot be sealed anew",
                remedy: "set the file aside; the key is as it was")
        }
        let (name, description) = (StateMeta.key, meta.encoded())
        do throws(LMDBError) {
            try self.storage.environment.write { (transaction) throws(LMDBError) in
                for key in plan.removed { try transaction.delete(self.storage.records, key.span) }
                for record in plan.written {
                    try transaction.put(
                        self.storage.records, record.key.span, record.value.span)
                }
                try transaction.put(self.storage.meta, name.span, description.span)
            }
        } catch {
            throw StateError(error, path: path)
        }
        return Outcome(seal: seal, records: plan.written.count)
    }

    private struct Plan {
        var removed: [[UInt8]] = []
        var written: [StateStorage.Sealed] = []
        var unreadable = 0
    }

    private func plan(for seal: RecordSeal, path: String) throws(StateError) -> Plan {
        let all: [StateStorage.Sealed]
        do throws(LMDBError) {
            all = try self.storage.all()
        } catch {
            throw StateError(error, path: path)
        }
        var plan = Plan()
        var principals: [[UInt8]: String] = [:]
        for sealed in all {
            plan.removed.append(sealed.key)
            let prefix = Array(sealed.key.prefix(RecordSeal.principalSize))
            let record = self.old.open(sealed.value, under: sealed.key)
            // Of a principal's records this one comes first.
            if case .principal(let name) = record { principals[prefix] = name }
            guard let record, let principal = principals[prefix] else {
                plan.unreadable += 1
                continue
            }
            plan.written.append(try seal.sealed(record, of: principal, path: path))
        }
        return plan
    }
}

extension RecordSeal {
    /// A record with the key under which it is to be stored.
    func sealed(
        _ record: StateRecord, of principal: String, path: String
    ) throws(StateError) -> StateStorage.Sealed {
        let key = self.key(record, of: principal)
        guard let value = try? self.seal(record, under: key) else {
            throw StateError(
                .unavailable, path: path, cause: "a record could not be sealed",
                remedy: "see whether the system's cryptography is in order")
        }
        return StateStorage.Sealed(key: key, value: value)
    }
}
