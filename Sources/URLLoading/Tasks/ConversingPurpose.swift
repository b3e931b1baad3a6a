/// A purpose whose handlers are called while the task lives, and before it begins.
protocol ConversingPurpose: TaskPurpose {
    /// Where they are called, and all messages of the task go.
    var lane: DelegateLane { get }
}
