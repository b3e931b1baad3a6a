import Foundation
import Glibc
import NIOCore

/// A file that is sent: open from its first byte, or the first that is wanted, to its last.
///
/// Its length is announced before its content is read, so it must not change meanwhile. Unchecked:
/// read by one job at a time.
final class UploadFile: UploadReader, @unchecked Sendable {
    /// How much is read at a time.
    static let pieceSize = 262_144

    let length: Int64
    private let url: URL
    private let descriptor: CInt
    private var position: Int64

    /// - Parameter offset: how many bytes are left out.
    /// - Throws: `requestBodyStreamExhausted` where the file has not as many; `fileDoesNotExist`,
    ///   `fileIsDirectory`, `noPermissionsToReadFile`, or `cannotOpenFile` for what is no regular file.
    init(_ url: URL, from offset: Int64 = 0) throws(URLError) {
        guard url.isFileURL else { throw FileWork.error(.unsupportedURL, url) }
        // Not to block on a pipe that nobody writes to.
        let descriptor = unsafe open(url.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw FileWork.openingError(errno, url) }
        let status = FileStatus(of: descriptor)
        guard let status, status.isRegular else {
            close(descriptor)
            throw FileWork.error(
                status?.isDirectory == true ? .fileIsDirectory : .cannotOpenFile, url)
        }
        self.url = url
        self.descriptor = descriptor
        self.length = status.size
        self.position = offset
        // The rest is closed with this.
        guard (0...status.size).contains(offset) else { throw self.changed() }
    }

    deinit { close(self.descriptor) }

    func read() throws(URLError) -> ByteBuffer? {
        guard self.position < self.length else { return nil }
        let wanted = Int(min(Int64(Self.pieceSize), self.length - self.position))
        var piece = ByteBuffer()
        var number: CInt = 0
        // A page that is not there is a failed read, not a signal: nothing is mapped.
        unsafe piece.writeWithUnsafeMutableBytes(minimumWritableBytes: wanted) { target in
            let count = FileWork.again {
                unsafe pread(self.descriptor, target.baseAddress, wanted, off_t(self.position))
            }
            if count < 0 { number = errno }
            return max(0, count)
        }
        guard number == 0 else {
            throw FileWork.error(.requestBodyStreamExhausted, self.url, number: number)
        }
        self.position += Int64(piece.readableBytes)
        guard piece.readableBytes > 0 else { throw self.changed() }
        // Before the last bytes leave: behind them the server would take a part for the whole.
        if self.position == self.length, FileStatus(of: self.descriptor)?.size != self.length {
            throw self.changed()
        }
        return piece
    }

    private func changed() -> URLError {
        FileWork.error(
            .requestBodyStreamExhausted, self.url,
            saying: "The file changed its length while it was sent.")
    }
}
