import Glibc

/// How many files and connections the process may have open (getrlimit(2), `RLIMIT_NOFILE`).
///
/// To run out of them may end the process: once a second Dispatch counts its busy threads, by opening
/// `/proc/PID/stat` of each, and traps where it cannot (`_dispatch_workq_count_runnable_workers`).
enum DescriptorLimit {
    /// For all that is no client's: files, pipes, event loops, idle connections to origins.
    static let reserve = 256

    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// The limit in force; nil where the system does not say.
    static var current: Int? {
        var limit = rlimit()
        guard unsafe getrlimit(Self.resource, &limit) == 0 else { return nil }
        return Int(clamping: limit.rlim_cur)
    }

    /// Raises the soft limit to the hard one, for the whole process.
    ///
    /// The soft one is low by default for the sake of programs that use select(2), which cannot
    /// name more than 1,024 (systemd.exec(5), `LimitNOFILE=`). Children inherit it: not for a process
    /// that runs the commands of others.
    static func raise() {
        var limit = rlimit()
        guard unsafe getrlimit(Self.resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else {
            return
        }
        limit.rlim_cur = limit.rlim_max
        // Where it is refused, the connections are fewer, and that is said.
        _ = unsafe setrlimit(Self.resource, &limit)
    }

    /// How many clients may be connected: each needs a descriptor, and another one for its origin.
    static func connections(_ wanted: Int, within limit: Int) -> Int {
        min(wanted, max(16, (limit - min(Self.reserve, limit / 4)) / 2))
    }
}
