import Glibc
import Synchronization

/// What a session knows of a request and nobody else is to see: the field lines that bear its
/// secrets, and the fields as the client sent them.
///
/// In the request itself stand digests in the place of these lines, so that whoever keeps, compares
/// or shows a request has no secret to lose. Only who sends the request asks for them. The octets are
/// overwritten when the last request that refers to them has gone.
package final class SealedFields: Sendable {
    private struct Line {
        let name: String
        var value: [UInt8]
    }

    /// More notes than this are left out.
    private static let noteLimit = 64

    private let lines: Mutex<[Line]>
    private let notes = Mutex<[String]>([])
    /// The names that are sealed, in the request once each as a digest.
    package let names: [FieldName]
    /// The client's own fields, as it sent them.
    package let client: Fields
    /// Whether this client may be led to a target by a redirection, with the method that is sent there.
    ///
    /// It is asked on any thread, and must not block.
    package let permits: @Sendable (Method, TargetURI) -> Bool
    /// Why the request must not go out; nil: it may.
    package let refusal: UpstreamFailure?

    /// - Parameters:
    ///   - lines: name and value of each line, as they are to be sent, in order.
    ///   - computed: names that are sealed and whose value is found when the request is sent.
    package init(
        _ lines: [(name: String, value: [UInt8])], computed: [FieldName] = [], client: Fields,
        refusal: UpstreamFailure? = nil, permits: @escaping @Sendable (Method, TargetURI) -> Bool
    ) {
        self.lines = Mutex(lines.map { Line(name: $0.name, value: $0.value) })
        self.names = lines.map { FieldName($0.name) } + computed
        self.client = client
        self.refusal = refusal
        self.permits = permits
    }

    /// The fields as they are to be sent: the digests out, the lines themselves in.
    package func unsealing(_ fields: Fields) -> Fields {
        guard !self.names.isEmpty else { return fields }
        var fields = fields
        for name in self.names { fields.remove(name) }
        self.lines.withLock { lines in
            for line in lines { fields.append(line.name, line.value) }
        }
        return fields
    }

    /// Notes for people what the session did on the way to an answer: a token, no secret.
    package func note(_ act: String) {
        self.notes.withLock { notes in
            if notes.count < Self.noteLimit { notes.append(act) }
        }
    }

    /// What was noted so far, in order.
    package var noted: [String] { self.notes.withLock { $0 } }

    deinit {
        self.lines.withLock { lines in
            for index in lines.indices {
                unsafe lines[index].value.withUnsafeMutableBytes { bytes in
                    guard let start = bytes.baseAddress else { return }
                    // Unlike a store that nobody reads, it is not left out by a compiler.
                    unsafe explicit_bzero(start, bytes.count)
                }
            }
        }
    }
}

extension SealedFields: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(sealed)" }
    package var debugDescription: String { self.description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
