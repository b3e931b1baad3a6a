import LarderLMDB
import LarderStore
import Synchronization

// The removal of all that is stored: an empty file takes the place of the one in use.
//
// It takes as long whatever is stored, and the disk has the old file's room again once the last who
// reads from it has ended. As with a compaction, the old file or the new one is there, whole, whenever
// the process dies.
extension DiskWriter {
    /// Removes all that is stored, and tells; what was posted after it goes into the new file.
    ///
    /// Where there is no room for another file, or none can be made, a walk removes one response after
    /// the other; also where somebody still reads from a file that was left so, as each of them takes its
    /// room on the disk until then. A file in trouble is left to it, too: it finds what is to be done
    /// about that.
    mutating func removeAll(_ walk: RemovalWalk) {
        guard self.core.file.trouble == nil,
            !self.core.entries.withLock({ $0.holdsFormerFile })
        else { return walk.walk() }
        do throws(LMDBError) {
            walk.end(try self.empty(below: walk.bound))
        } catch {
            // Also where it could not be made whole.
            self.core.files.removeNext()
            walk.walk()
        }
    }

    /// - Parameter bound: what began to be stored before is to go, too: its id is below.
    /// - Returns: how many responses were stored.
    private mutating func empty(below bound: UInt64) throws(LMDBError) -> Int {
        let core = self.core
        let old = core.file
        let meta = self.emptyMeta
        let (environment, schema) = try OpenedCache.makeNext(
            core.files, core.configuration, meta: meta)
        let left: LeftFile
        do throws(LMDBError) {
            try environment.synchronize()
            left = try self.leave(old, for: environment, schema, below: bound)
        } catch {
            environment.close()
            throw error
        }
        self.begin(meta)
        // It was full, or could not be written: this one is not.
        core.mended()
        core.closeLater(old)
        for sink in left.sinks { sink.end(.abandoned(.removed)) }
        return Int(clamping: left.count)
    }

    /// What was in a file that another one took the place of.
    private struct LeftFile {
        /// Responses.
        var count: UInt64 = 0
        /// Those that had written something there, or are to go with it.
        var sinks: [SinkState] = []
        /// What is held of it.
        var held: [ObjectID] = []
    }

    /// Goes on with a new file.
    ///
    /// Nothing of the old one is found any more from before the new one is in use. So what a look-up
    /// holds by then is all that is still read from it; and nothing is written meanwhile, so that what has
    /// no segment in it has none at all.
    private func leave(
        _ old: CacheFile, for environment: Environment, _ schema: Schema, below bound: UInt64
    ) throws(LMDBError) -> LeftFile {
        let core = self.core
        let bodies = core.entries.withLock { entries in
            entries.hideAll(below: ObjectID(rawValue: core.nextID))
            return entries.held
        }
        let sinks = core.openSinks()
        do throws(LMDBError) {
            let left = try old.environment.read { (transaction) throws(LMDBError) -> LeftFile in
                var left = LeftFile()
                left.count = try transaction.statistics(of: old.schema.objects).entries
                for id in bodies where try old.schema.hasSegments(id, transaction) {
                    left.held.append(id)
                }
                // What has written nothing yet writes all of it into the new file.
                for sink in sinks {
                    let hasWritten = try old.schema.hasSegments(sink.id, transaction)
                    if hasWritten || sink.id.rawValue < bound { left.sinks.append(sink) }
                }
                return left
            }
            core.entries.withLock { $0.keep(old, for: left.held) }
            try core.exchange(for: environment, schema)
            return left
        } catch {
            core.entries.withLock { $0.stays(old) }
            throw error
        }
    }
}
