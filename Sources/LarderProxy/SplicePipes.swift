/// The pipes of one event loop's tunnels: as many as are in use at a time, up to a bound.
///
/// A tunnel needs one while it moves bytes, and has it for longer only where a target does not take
/// them. Beyond the bound, tunnels copy. Confined to the loop.
final class SplicePipes {
    private let most: Int
    private var idle: [SplicePipe] = []
    /// Those in use and those that wait here.
    private(set) var count = 0

    init(most: Int) {
        self.most = most
    }

    /// Nil where all are in use, or none is to be had.
    func borrow() -> SplicePipe? {
        if let pipe = self.idle.popLast() { return pipe }
        guard self.count < self.most, let pipe = SplicePipe() else { return nil }
        self.count += 1
        return pipe
    }

    /// Takes a pipe back; what still lies in it is thrown away with it.
    func giveBack(_ pipe: SplicePipe) {
        if pipe.held == 0 {
            self.idle.append(pipe)
        } else {
            self.count -= 1
        }
    }
}
