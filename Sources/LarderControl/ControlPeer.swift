import Glibc

/// Who listens on a control socket.
///
/// A command may send secrets. Where the directory of the socket lets others write, one of them could
/// listen there before the proxy does.
enum ControlPeer {
    /// Refuses a connection of which the other end is none of ours, before anything is sent.
    static func check(_ descriptor: CInt, at path: String) throws(ControlError) {
        // `struct ucred { pid_t pid; uid_t uid; gid_t gid; }` (unix(7)), which is declared for programs
        // with GNU extensions only; of who called listen(2).
        var peer: (pid: pid_t, uid: uid_t, gid: gid_t) = (0, .max, .max)
        var size = socklen_t(MemoryLayout.size(ofValue: peer))
        guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 else {
            throw .last("see who listens at \(path)")
        }
        guard
            !Self.isTrusted(
                peer.uid, by: geteuid(), directoryOwner: Self.owner(ofDirectoryOf: path))
        else { return }
        throw ControlError(
            .foreign, "user \(peer.uid) listens at \(path), not root or user \(geteuid())")
    }

    /// Root and the user itself are; the superuser asks services, too, which have a directory of their
    /// own.
    static func isTrusted(_ peer: uid_t, by user: uid_t, directoryOwner: uid_t?) -> Bool {
        peer == 0 || peer == user || user == 0 && peer == directoryOwner
    }

    private static func owner(ofDirectoryOf path: String) -> uid_t? {
        var status = stat()
        guard let slash = path.lastIndex(of: "/"),
            unsafe stat(String(path[...slash]), &status) == 0
        else { return nil }
        return status.st_uid
    }
}
