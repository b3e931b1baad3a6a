/// A lower tier that may not be open, whose file another process may open again.
package protocol AbsentTier: AnyObject, Sendable {
    /// Sees to it that what the file holds does not come back after a removal of which it is not told
    /// otherwise, as far as that can be done, and calls `completion` then; at once where the file is open.
    /// Any thread may call it, and it waits for nothing.
    func willAnswerRemoval(_ completion: @escaping @Sendable () -> Void)
}
