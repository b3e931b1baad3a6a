/// The easy handles of a loop that no transfer uses, and what all of its handles share.
///
/// A handle that kept its options remembers the last response, too (`CurlLibrary.forgetsFields`): it
/// serves transfers of the same profile, whose heads are looked at first (`FirstFieldGuard`), and is
/// renewed for others.
///
/// Confined to the thread of its loop.
final class HandlePool {
    /// Beyond so many none is kept.
    private static let limit = 256

    private var idle: [EasyHandle] = []
    private let share: SharedState

    init() throws(TransferError) {
        self.share = try SharedState()
    }

    func take(for profile: OptionProfile?) throws(TransferError) -> EasyHandle {
        var idle = exchange(&self.idle, with: [])
        let last = idle.popLast()
        self.idle = idle
        if let easy = last,
            easy.profile == nil || easy.profile == profile || self.renew(easy)
        {
            return easy
        }
        return try EasyHandle(share: self.share)
    }

    /// Keeps one that was retired for another transfer.
    func put(_ easy: EasyHandle) {
        guard self.idle.count < Self.limit, easy.profile != nil || self.renew(easy) else { return }
        var idle = exchange(&self.idle, with: [])
        idle.append(easy)
        self.idle = idle
    }

    /// Frees those that are kept: before the multi handle is.
    func empty() { self.idle = [] }

    private func renew(_ easy: EasyHandle) -> Bool {
        CurlLibrary.forgetsFields || easy.renew(share: self.share)
    }
}
