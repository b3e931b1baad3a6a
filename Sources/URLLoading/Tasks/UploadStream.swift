import Foundation
import NIOCore

/// A stream of a program's that is sent.
///
/// Opened, read and closed on one queue, one call at a time; a call that blocks keeps one thread of
/// the pool for so long. Unchecked for that reason.
final class UploadStream: UploadReader, @unchecked Sendable {
    /// How much is read at a time.
    static let pieceSize = 65_536

    private let stream: InputStream
    private var isOpen = false

    init(_ stream: InputStream) {
        self.stream = stream
    }

    deinit { if self.isOpen { self.stream.close() } }

    func read() throws(URLError) -> ByteBuffer? {
        if !self.isOpen {
            self.isOpen = true
            if self.stream.streamStatus == .notOpen { self.stream.open() }
        }
        var piece = ByteBuffer()
        var result = 0
        unsafe piece.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.pieceSize) { target in
            guard let bytes = unsafe target.bindMemory(to: UInt8.self).baseAddress else { return 0 }
            result = unsafe self.stream.read(bytes, maxLength: Self.pieceSize)
            // A program's own class may say anything.
            return (0...Self.pieceSize).contains(result) ? result : 0
        }
        guard (0...Self.pieceSize).contains(result) else {
            throw URLError(.requestBodyStreamExhausted, userInfo: self.cause)
        }
        return piece.readableBytes > 0 ? piece : nil
    }

    /// What Foundation's own streams say of an error. Foundation traps where there is none, and so do
    /// subclasses that do not say it themselves.
    private var cause: [String: Any] {
        guard type(of: self.stream) == InputStream.self, self.stream.streamStatus == .error,
            let error = self.stream.streamError
        else { return [:] }
        return [NSUnderlyingErrorKey: error]
    }
}
