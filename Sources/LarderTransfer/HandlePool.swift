/// The easy handles of a loop that no transfer uses, and what all of its handles share.
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

    func take() throws(TransferError) -> EasyHandle {
        if let easy = self.idle.popLast() { return easy }
        return try EasyHandle(share: self.share)
    }

    /// Keeps one that was retired for another transfer.
    func put(_ easy: EasyHandle) {
        guard self.idle.count < Self.limit,
            CurlLibrary.forgetsFields || easy.renew(share: self.share)
        else { return }
        self.idle.append(easy)
    }

    /// Frees those that are kept: before the multi handle is.
    func empty() { self.idle = [] }
}
