/// How many transfers the loops of one thread have under way.
///
/// Each fetch that a guest begins asks whether it is the only one, and a thread may have hundreds of
/// loops. Not `Sendable`: belongs to the runner of the loops.
final class TransferTally {
    private(set) var count = 0

    func began() { self.count += 1 }
    func ended() { self.count -= 1 }
}
