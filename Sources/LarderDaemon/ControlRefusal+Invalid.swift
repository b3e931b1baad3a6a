import LarderControl

extension ControlRefusal {
    /// Something that was asked for cannot be.
    init(invalid message: String) {
        self.init(failure: ControlFailure(.invalid, message))
    }
}
