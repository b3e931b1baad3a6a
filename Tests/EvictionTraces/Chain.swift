/// Queues over objects that are small numbers: each object is in at most one of them.
struct Chains {
    struct Chain {
        fileprivate(set) var newest = -1
        fileprivate(set) var oldest = -1
        fileprivate(set) var bytes: UInt64 = 0
        fileprivate(set) var count = 0
    }

    private var newer: [Int32] = []
    private var older: [Int32] = []
    private var sizes: [UInt64] = []
    /// By object: which chain it is in, -1 for none.
    private(set) var place: [Int8] = []
    private(set) var chains: [Chain]

    init(_ count: Int) {
        self.chains = Array(repeating: Chain(), count: count)
    }

    subscript(_ chain: Int) -> Chain { self.chains[chain] }

    func chain(of object: Int) -> Int {
        object < self.place.count ? Int(self.place[object]) : -1
    }

    func size(of object: Int) -> UInt64 { self.sizes[object] }

    mutating func append(_ object: Int, size: UInt64, to chain: Int) {
        while self.place.count <= object {
            self.place.append(-1)
            self.newer.append(-1)
            self.older.append(-1)
            self.sizes.append(0)
        }
        self.place[object] = Int8(chain)
        self.sizes[object] = size
        let before = self.chains[chain].newest
        self.older[object] = Int32(before)
        self.newer[object] = -1
        if before >= 0 { self.newer[before] = Int32(object) }
        self.chains[chain].newest = object
        if self.chains[chain].oldest < 0 { self.chains[chain].oldest = object }
        self.chains[chain].bytes += size
        self.chains[chain].count += 1
    }

    mutating func remove(_ object: Int) {
        let chain = Int(self.place[object])
        guard chain >= 0 else { return }
        let (newer, older) = (Int(self.newer[object]), Int(self.older[object]))
        if newer >= 0 {
            self.older[newer] = Int32(older)
        } else {
            self.chains[chain].newest = older
        }
        if older >= 0 {
            self.newer[older] = Int32(newer)
        } else {
            self.chains[chain].oldest = newer
        }
        self.chains[chain].bytes -= self.sizes[object]
        self.chains[chain].count -= 1
        self.place[object] = -1
    }

    mutating func move(_ object: Int, to chain: Int) {
        self.remove(object)
        self.append(object, size: self.sizes[object], to: chain)
    }
}
