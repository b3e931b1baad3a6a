import Glibc

/// The files of a service that is stopped, when the superuser looks after them.
package enum ForeignFile {
    /// Refuses to let the superuser make files among those of somebody else, who could not use them:
    /// a service would start without its cache, or without what it remembers.
    ///
    /// Who the files belong to is told by the one that is to be opened, or else by the nearest
    /// directory that is there. Others than the superuser are stopped by the kernel.
    package static func check(
        _ directory: String, holding file: String
    ) throws(DaemonError) {
        guard let owner = Self.owner(of: "\(directory)/\(file)"),
            let refusal = Self.refusal(to: geteuid(), in: directory, ownedBy: owner)
        else { return }
        throw refusal
    }

    /// nil where there is no objection.
    static func refusal(
        to user: uid_t, in directory: String, ownedBy owner: uid_t
    ) -> DaemonError? {
        guard user == 0, owner != 0 else { return nil }
        return DaemonError(
            .notPermitted,
            "\(directory) belongs to user \(owner), who could not use what root makes there; start "
                + "the proxy, which does this itself, or run this as that user (sudo -u '#\(owner)')"
        )
    }

    private static func owner(of path: String) -> uid_t? {
        var path = Substring(path)
        while true {
            var status = stat()
            if unsafe stat(path.isEmpty ? "/" : String(path), &status) == 0 { return status.st_uid }
            guard let slash = path.lastIndex(of: "/") else { return nil }
            path = path[..<slash]
        }
    }
}
