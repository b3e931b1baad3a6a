import Glibc
package import LarderConfig

extension LogWriter {
    /// Begins to write to a destination of the configuration; nil for none.
    ///
    /// - Throws: when its file cannot be opened.
    package static func open(
        _ destination: LogDestination, notice: @escaping @Sendable (Notice) -> Void
    ) throws(LogError) -> LogWriter? {
        guard destination != .none else { return nil }
        return LogWriter(sink: try Self.sink(destination), notice: notice)
    }

    /// Throws where a file could not be opened anew now; but a pipe that nobody reads at the moment may
    /// have a reader again.
    static func check(_ destination: LogDestination) throws(LogError) {
        guard case .file(let path) = destination else { return }
        do throws(LogError) {
            _ = try DescriptorSink(path: path.text)
        } catch {
            if error.code != ENXIO { throw error }
        }
    }

    private static func sink(_ destination: LogDestination) throws(LogError) -> sending any LogSink
    {
        switch destination {
        case .none, .stdout: return DescriptorSink()
        case .journal: return JournalSink()
        case .file(let path): return try DescriptorSink(path: path.text)
        }
    }
}

/// A log that cannot be written to.
package struct LogError: Error, Sendable, Equatable, CustomStringConvertible {
    package var path: String
    /// The `errno` of what failed.
    package var code: CInt

    package init(path: String, code: CInt) {
        self.path = path
        self.code = code
    }

    package var description: String {
        "cannot open the log \(self.path): \(Self.text(self.code))"
    }

    /// What keeps a log from being opened, in words.
    ///
    /// open(2): "ENXIO: O_NONBLOCK | O_WRONLY is set, the named file is a FIFO, and no process has the
    /// FIFO open for reading."
    static func text(_ code: CInt) -> String {
        code == ENXIO ? "it is a pipe that no program reads" : SystemError.text(code)
    }
}
