/// Stands for a lower tier that could not be opened, whose file another process will open again.
package protocol AbsentTier: AnyObject, Sendable {
    /// Sees to it that what the tier holds does not come back after a removal, as far as that can be
    /// done, and calls `completion` then; any thread may call it, and it waits for nothing.
    func willAnswerRemoval(_ completion: @escaping @Sendable () -> Void)
    /// Why it may come back nevertheless; nil where it will not.
    var unkeptRemoval: UnkeptRemoval? { get }
}
