/// Waiting, but not for ever, for what cannot be broken off.
enum BoundedWait {
    /// Waits until `work` has ended, or for so long.
    ///
    /// - Returns: whether it has ended; where it has not, it goes on.
    static func ended(_ work: Task<Void, Never>, within limit: Duration) async -> Bool {
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        Task {
            await work.value
            end.yield(true)
        }
        let timer = Task {
            try? await Task.sleep(for: limit)
            end.yield(false)
        }
        defer { timer.cancel() }
        return await ends.first { _ in true } ?? false
    }
}
