import CRequestLoad
import LarderHTTP

/// What is counted, by the names under which thresholds are checked in.
enum Row: String, CaseIterable {
    case hit
    case varied
    case notModified = "304"
    case disk
    case miss
    case stored

    var title: String {
        switch self {
        case .hit: "hit from memory, 1 KiB"
        case .varied: "the same, each request numbered"
        case .notModified: "conditional request, answered 304"
        case .disk: "hit from disk, warm pages, 1 KiB"
        case .miss: "miss, not storable, 1 KiB"
        case .stored: "miss, stored on disk, 4 KiB"
        }
    }

    /// What the memory tier of its proxy holds.
    var memory: ByteCount { self == .disk ? .zero : .mebibytes(64) }

    var kind: request_load_kind {
        switch self {
        case .hit, .disk: REQUEST_LOAD_HIT
        case .varied: REQUEST_LOAD_VARIED
        case .notModified: REQUEST_LOAD_NOT_MODIFIED
        case .miss: REQUEST_LOAD_MISS
        case .stored: REQUEST_LOAD_STORE
        }
    }
}

/// The client and the origin, in a process of their own.
struct Load: Sendable {
    struct Failed: Error, CustomStringConvertible {
        var description: String
    }

    private let descriptor: Int32
    private var nextNumber: UInt64 = 0

    /// To be called before there is a second thread.
    init() throws {
        self.descriptor = request_load_start()
        if self.descriptor < 0 { throw Failed(description: "the load did not start") }
    }

    /// Has stored what a row wants to be there from its first request on.
    mutating func prepare(_ row: Row, port: UInt16) throws {
        // What is not stored yet is not answered 304.
        if row == .notModified { try self.run(.hit, count: 1, port: port) }
    }

    /// Sends requests one after the other, and returns when all are answered.
    mutating func run(_ row: Row, count: UInt64, port: UInt16) throws {
        let result = request_load_run(self.descriptor, port, row.kind, self.nextNumber, count)
        self.nextNumber += count
        if result != 0 {
            throw Failed(description: "\(row.rawValue): an answer was not what it must be")
        }
    }
}
