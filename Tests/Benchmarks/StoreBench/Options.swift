import LarderHTTP

/// What the command line asks for.
struct Options {
    enum Command: String, CaseIterable {
        case fill, churn, read, lookupAbsent = "lookup-absent", open
    }

    var command: Command
    var directory = ""
    var capacity = ByteCount.gibibytes(2)
    /// Responses to store, or to ask for.
    var objects: UInt64 = 100_000
    /// Bytes to store; 0 where the number of objects decides.
    var bytes: UInt64 = 0
    var capacities: UInt64 = 20
    var pattern = SizePattern.fixed(4096)
    /// Bodies that are written at the same time.
    var streams = 32
    var isCold = false
    var verifies = true

    static let usage = """
        usage: StoreBench COMMAND --directory DIR [OPTION…]
          fill           stores responses            --objects N | --bytes B
          churn          stores many capacities' worth, a line for each    --capacities N
          read           reads stored responses, chosen at random          --objects N [--cold]
          lookup-absent  asks for what is not there, and says which pages that touched
          open           opens, looks one response up, and says what it took
          --capacity B   the bound of the file (2GiB)
          --size B | --zipf | --pattern small|mixed|phases|zipf            sizes of bodies
          --streams N    bodies that are written at the same time (32)
          --unverified   does not compare the bytes that it reads
        Sizes take the units KiB, MiB and GiB. What was stored is found again with the same sizes.
        """

    init(_ arguments: [String]) throws(UsageError) {
        guard let first = arguments.first, let command = Command(rawValue: first) else {
            throw UsageError(message: "no such command")
        }
        self.command = command
        var rest = arguments.dropFirst()
        while let name = rest.popFirst() {
            switch name {
            case "--cold": self.isCold = true
            case "--warm": self.isCold = false
            case "--unverified": self.verifies = false
            case "--zipf": self.pattern = .zipf
            default:
                guard let value = rest.popFirst() else {
                    throw UsageError(message: "\(name) lacks its value")
                }
                try self.take(name, value)
            }
        }
        if self.directory.isEmpty { throw UsageError(message: "--directory is needed") }
    }

    private mutating func take(_ name: String, _ value: String) throws(UsageError) {
        switch name {
        case "--directory": self.directory = value
        case "--capacity": self.capacity = ByteCount(try Self.bytes(value))
        case "--objects": self.objects = try Self.bytes(value)
        case "--bytes": self.bytes = try Self.bytes(value)
        case "--capacities": self.capacities = try Self.bytes(value)
        case "--size": self.pattern = .fixed(try Self.bytes(value))
        case "--streams": self.streams = max(1, Int(clamping: try Self.bytes(value)))
        case "--pattern":
            guard let pattern = SizePattern(name: value) else {
                throw UsageError(message: "no pattern \(value)")
            }
            self.pattern = pattern
        default: throw UsageError(message: "no option \(name)")
        }
    }

    /// A number, with a binary unit behind it or without.
    private static func bytes(_ text: String) throws(UsageError) -> UInt64 {
        let digits = text.prefix { $0.isNumber }
        let shift: UInt64? =
            switch text.dropFirst(digits.count) {
            case "": 0
            case "KiB": 10
            case "MiB": 20
            case "GiB": 30
            default: nil
            }
        guard let number = UInt64(digits), let shift, number <= UInt64.max >> shift else {
            throw UsageError(message: "\(text) is no number of bytes")
        }
        return number << shift
    }
}

/// Why a command line cannot be used.
struct UsageError: Error {
    var message: String
}
