import CCurl
import LarderHTTP

/// What a transfer's observer is told of it.
extension Transfer {
    /// Tells how much of the content has gone out, if that is more than was told before.
    func tellSent() {
        guard let observer = self.observer, let content = self.content,
            content.sent > self.toldSent
        else { return }
        self.toldSent = content.sent
        observer.transfer(sent: content.sent)
    }

    /// Tells what it took; the last thing that is heard of a transfer, whatever became of it.
    func tellMeasurement() {
        guard !self.isMeasured else { return }
        self.isMeasured = true
        self.observer?.transfer(measured: self.measurement)
    }
}
