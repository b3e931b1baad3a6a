package import LarderControl
package import LarderDisk
import LarderEngine

extension RunningProxy {
    /// Has the writer of a session's cache take out what was found in its file.
    func mend(_ damage: [DamageRecord], in members: [RunningSession]) async throws -> [DamageRecord]
    {
        var mended: [DamageRecord] = []
        let known = damage.compactMap { DiskDamage($0) }
        guard known.count == damage.count, damage.count <= DamageRecord.mostInRequest else {
            throw ControlRefusal(invalid: "damage of a kind that is not known here")
        }
        for member in members {
            mended += (await member.open.mend(known) ?? []).map { DamageRecord($0) }
        }
        return mended
    }
}

extension DiskDamage {
    /// nil for a kind that this release does not know.
    package init?(_ record: DamageRecord) {
        guard let kind = Kind(rawValue: record.kind) else { return nil }
        self.init(
            kind, high: record.high, low: record.low, id: record.id, number: record.number)
    }
}

extension DamageRecord {
    package init(_ damage: DiskDamage) {
        self.init(
            kind: damage.kind.rawValue, high: damage.high, low: damage.low, id: damage.id,
            number: damage.number)
    }
}
