import Foundation
import Glibc
import LarderDisk
import NIOCore

/// A temporary file that a body is written to.
///
/// Every method but `remove` blocks for as long as the disk takes, and is called by one job at a time;
/// unchecked for that reason.
final class DownloadFile: @unchecked Sendable {
    static let prefix = "CFNetworkDownload_"
    static let suffix = ".tmp"

    private static let blockSize = 262_144
    /// How much is summed up at a time while the file is written.
    private static let stride: Int64 = 1 << 20

    let path: String
    private let identity: FileStatus
    private var descriptor: CInt
    /// The checksum of its first blocks, which are whole and are not read again.
    private var summed = (length: Int64(0), checksum: UInt64(0))

    /// Takes over a descriptor that is open for reading and writing.
    private init?(_ descriptor: CInt, path: String) {
        self.path = path
        self.descriptor = descriptor
        guard let status = FileStatus(of: descriptor) else {
            Glibc.close(descriptor)
            return nil
        }
        self.identity = status
    }

    deinit { if self.descriptor >= 0 { Glibc.close(self.descriptor) } }

    var url: URL { URL(fileURLWithPath: self.path, isDirectory: false) }

    /// Makes a new one, which only this user can read (0600) and which nobody had before.
    ///
    /// - Throws: `cannotCreateFile`.
    static func create(in directory: URL) throws(URLError) -> DownloadFile {
        var number: CInt = EEXIST
        // Among 62^6 names the first one is free, but for somebody who takes them on purpose.
        for _ in 0..<100 where number == EEXIST {
            let path = directory.appendingPathComponent(self.randomName()).path
            let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
            let descriptor = unsafe Glibc.open(path, flags, 0o600)
            guard descriptor >= 0 else {
                number = errno
                continue
            }
            guard let file = DownloadFile(descriptor, path: path) else { break }
            // Whoever resumes into it later must not do so while it is written.
            flock(descriptor, LOCK_EX | LOCK_NB)
            return file
        }
        throw FileWork.error(.cannotCreateFile, directory, number: number)
    }

    private static func randomName() -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        let letters = (0..<6).map { _ in alphabet[Int.random(in: alphabet.indices)] }
        return self.prefix + String(letters) + self.suffix
    }

    /// Whether a path could be one of ours: what a stranger's resume data names is touched only then.
    static func isPlausible(_ path: String) -> Bool {
        guard path.hasPrefix("/"), !path.utf8.contains(0) else { return false }
        let name = path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard name.hasPrefix(self.prefix), name.hasSuffix(self.suffix),
            name.utf8.count == self.prefix.utf8.count + 6 + self.suffix.utf8.count
        else { return false }
        return !path.split(separator: "/").contains("..")
    }

    /// Opens what an earlier download left, to go on behind `part.length`.
    ///
    /// - Parameter isWanted: asked again and again, once it is locked; where it is not, the file is let
    ///   go of at once.
    /// - Returns: nil where it is gone, shorter, altered, not ours alone, or being written by another
    ///   task.
    static func open(
        _ part: DownloadPart, while isWanted: () -> Bool = { true }
    ) -> DownloadFile? {
        guard self.isPlausible(part.path) else { return nil }
        let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let descriptor = unsafe Glibc.open(part.path, flags)
        guard descriptor >= 0, let file = DownloadFile(descriptor, path: part.path) else {
            return nil
        }
        let status = file.identity
        guard status.isRegular, status.owner == geteuid(), status.links == 1,
            !status.isOpenToOthers, part.length > 0, status.size >= part.length,
            flock(descriptor, LOCK_EX | LOCK_NB) == 0,
            file.checksum(of: part.length, while: isWanted) == part.checksum,
            file.truncate(to: part.length)
        else { return nil }
        return file
    }

    /// Shortens it; what is written next follows behind.
    func truncate(to length: Int64) -> Bool {
        guard ftruncate(self.descriptor, off_t(length)) == 0 else { return false }
        return lseek(self.descriptor, off_t(length), SEEK_SET) == off_t(length)
    }

    /// Appends.
    ///
    /// - Throws: `cannotWriteToFile`.
    func write(_ pieces: [ByteBuffer]) throws(URLError) {
        for piece in pieces {
            let number = unsafe piece.withUnsafeReadableBytes { bytes -> CInt in
                var rest = unsafe bytes[...]
                while unsafe !rest.isEmpty {
                    let count = FileWork.again {
                        unsafe Glibc.write(
                            self.descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress,
                            rest.count)
                    }
                    if count < 0 { return errno }
                    // A disk that takes nothing and says nothing.
                    if count == 0 { return ENOSPC }
                    unsafe rest = unsafe rest.dropFirst(count)
                }
                return 0
            }
            guard number == 0 else {
                throw FileWork.error(.cannotWriteToFile, self.url, number: number)
            }
        }
    }

    /// Closes a file that nothing was written to.
    func letGo() {
        // Nothing can be lost by a failure.
        try? self.close()
    }

    /// - Throws: `cannotCloseFile`: what was written may not have arrived.
    func close() throws(URLError) {
        guard self.descriptor >= 0 else { return }
        let descriptor = self.descriptor
        self.descriptor = -1
        // Never again, whatever it says: the number may be another file's already.
        guard Glibc.close(descriptor) != 0, errno != EINTR else { return }
        throw FileWork.error(.cannotCloseFile, self.url, number: errno)
    }

    /// The checksum of its first `length` bytes; nil where they cannot be read, as the file is closed,
    /// or nobody wants to know any more.
    ///
    /// Blocks that were summed up before are not read again: what has become of them meanwhile is told
    /// when the file is opened the next time.
    func checksum(of length: Int64, while isWanted: () -> Bool = { true }) -> UInt64? {
        // What is whole is nobody's to go on with, though all of it may be summed up.
        guard self.descriptor >= 0 else { return nil }
        if self.summed.length > length { self.summed = (0, 0) }
        var (position, checksum) = self.summed
        let longest = min(Int64(Self.blockSize), length - position)
        var block = [UInt8](repeating: 0, count: Int(longest))
        while position < length {
            guard isWanted() else { return nil }
            let wanted = Int(min(longest, length - position))
            guard self.read(wanted, at: position, into: &block) else { return nil }
            checksum = Checksum.chain(block.span.extracting(0..<wanted), behind: checksum)
            position += Int64(wanted)
            if wanted == Self.blockSize { self.summed = (position, checksum) }
        }
        return checksum
    }

    /// Sums up what has been written so far but for its end, so that `checksum` need not read all of it
    /// when somebody waits.
    func sumUp(to length: Int64) {
        guard length - self.summed.length >= Self.stride else { return }
        // Where it cannot be read now, `checksum` tries again.
        _ = self.checksum(of: length - length % Int64(Self.blockSize))
    }

    private func read(_ wanted: Int, at position: Int64, into block: inout [UInt8]) -> Bool {
        var filled = 0
        while filled < wanted {
            let count = unsafe block.withUnsafeMutableBytes { bytes in
                FileWork.again {
                    unsafe pread(
                        self.descriptor, bytes.baseAddress?.advanced(by: filled), wanted - filled,
                        off_t(position + Int64(filled)))
                }
            }
            guard count > 0 else { return false }
            filled += count
        }
        return true
    }

    /// Deletes it, unless the program has moved it away.
    ///
    /// Any thread.
    func remove() {
        guard let status = FileStatus(atPath: self.path, followsLink: false),
            status.isSameFile(as: self.identity)
        else { return }
        unsafe unlink(self.path)
    }
}

/// What a download has left in its temporary file.
struct DownloadPart: Sendable, Equatable {
    var path: String
    /// In bytes; what the file has beyond does not count.
    var length: Int64
    /// The checksum of these bytes.
    var checksum: UInt64
}
