import Glibc

/// How many files and connections the process may have open (getrlimit(2), `RLIMIT_NOFILE`).
///
/// To run out of them may end the process: once a second Dispatch counts its busy threads, by opening
/// `/proc/PID/stat` of each, and traps where it cannot (`_dispatch_workq_count_runnable_workers`).
enum DescriptorLimit {
    /// For what is opened later and is no client's: pipes, idle connections to origins, commands.
    private static let reserve = 16...256

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

    /// How many descriptors are open: those of event loops, caches, logs.
    static var open: Int {
        guard let listing = unsafe opendir("/proc/self/fd") else { return 0 }
        defer { _ = unsafe closedir(listing) }
        var count = 0
        while unsafe readdir(listing) != nil { count += 1 }
        // Those of the directory itself, its parent, and the reading of it.
        return max(0, count - 3)
    }

    /// How many clients may be connected: each needs a descriptor, and another one for its origin.
    static func connections(_ wanted: Int, within limit: Int, besides open: Int) -> Int {
        let left = max(0, limit - open)
        let reserve = min(max(left / 4, Self.reserve.lowerBound), Self.reserve.upperBound)
        // Fewer are no proxy: what is lacking then is waited for.
        return min(wanted, max(4, (left - reserve) / 2))
    }
}
