import LarderHTTP
package import LarderPolicy
import NIOCore

/// Partial content in the memory tier (RFC 9111 §3.3, §3.4).
extension MemoryStore {
    /// Begins to store a part of a response: the one range of its head's extent.
    func storePart(
        _ head: StoredHead, _ extent: StoredExtent, for key: CacheKey, length: UInt64?,
        replacing: [ObjectID], begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        guard let range = extent.ranges.first, extent.ranges.count == 1,
            self.mayTake(extent.bodyLength),
            length == nil || length == range.upperBound - range.lowerBound
        else { return nil }
        return MemorySink(
            self, .new(head, replacing: replacing), HashedKey(key), start: range.lowerBound,
            length: range.upperBound - range.lowerBound, begun: begun, observer)
    }

    package func extend(
        _ id: ObjectID, of key: CacheKey, at offset: UInt64, length: UInt64?,
        completeLength: UInt64?, begun: RemovalMark, observer: any ObjectSinkObserver
    ) -> (any ObjectSink)? {
        let limit = self.largestBody
        let key = HashedKey(key)
        guard offset <= limit, length ?? 0 <= limit - offset,
            let extent = self.withShard(of: key, { $0.entry(id, of: key)?.object.head.extent }),
            (try? extent.adding(
                offset..<offset + (length ?? 0), completeLength: completeLength, limit: limit))
                != nil
        else { return nil }
        return MemorySink(
            self, .addition(id, completeLength: completeLength), key, start: offset,
            length: length, begun: begun, observer)
    }

    /// What has come of an attempt to put a grown body in the place of the one it grew from.
    enum Growth: Sendable {
        case done
        /// Another addition was faster.
        case changed
        case failed(SinkAbandonment)
    }

    /// Adds bytes to a partial response, in one step.
    ///
    /// The new body is made without a lock; where another addition came in between, it is made anew
    /// from what is there then.
    func add(
        _ bytes: ByteBuffer, at offset: UInt64, completeLength: UInt64?, to id: ObjectID,
        of key: HashedKey, begun: RemovalMark
    ) -> SinkOutcome {
        let range = offset..<offset + UInt64(bytes.readableBytes)
        while true {
            guard let object = self.withShard(of: key, { $0.entry(id, of: key)?.object }) else {
                return .abandoned(.removed)
            }
            let extent: StoredExtent
            do throws(SinkAbandonment) {
                extent = try object.extent.adding(
                    range, completeLength: completeLength,
                    limit: self.largestBody)
            } catch {
                return .abandoned(error)
            }
            // Complete by now, with all that was to be added.
            guard let parts = object.body as? MemoryParts else { return .visible(id) }
            guard let grown = parts.adding(bytes, at: offset, making: extent) else {
                return .abandoned(.contradictory)
            }
            let body: any StoredBody = extent.isComplete ? MemoryBody(grown.whole) : grown
            let growth = self.admit(key, begun: begun) { shard in
                shard.grow(id, of: key, from: parts, to: body, extent)
            }
            switch growth {
            case .admitted(.done): return .visible(id)
            case .admitted(.changed): continue
            case .admitted(.failed(let reason)), .refused(let reason): return .abandoned(reason)
            }
        }
    }
}

extension MemoryShard {
    /// Puts a grown body in the place of `parts`, unless that has been replaced meanwhile.
    mutating func grow(
        _ id: ObjectID, of key: HashedKey, from parts: MemoryParts, to body: any StoredBody,
        _ extent: StoredExtent
    ) -> MemoryStore.Growth {
        guard var object = self.entry(id, of: key)?.object else { return .failed(.removed) }
        guard let current = object.body as? MemoryParts, current === parts else { return .changed }
        object.body = body
        object.head = object.head.with(extent: extent)
        object.bodyLength = extent.bodyLength
        guard self.replace(id, of: key, with: object) else { return .failed(.tooLarge) }
        // It may have been the one to leave for its own growth.
        return self.entry(id, of: key) == nil ? .failed(.noSpace) : .done
    }
}
