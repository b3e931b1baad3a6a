package import LarderState
import Synchronization

/// What the processes of a program keep together: one open state for each place, however many objects
/// of this process use it.
package enum LibraryState {
    /// A place by the files themselves, whatever path leads there: a directory that exists, and what is
    /// still to be made below it.
    private struct Place: Hashable {
        var directory: FilePlace?
        var rest: [Substring]

        init(_ path: String) {
            var parts = path.split(separator: "/")
            self.rest = []
            while true {
                self.directory = FilePlace("/" + parts.joined(separator: "/"))
                guard self.directory == nil, let last = parts.popLast() else { return }
                self.rest.insert(last, at: 0)
            }
        }
    }

    private static let states = Mutex<[SharedState]>([])

    /// The state in a directory (an absolute path), the same object each time; opens and makes nothing.
    ///
    /// It has `cookies` and `credentials` (the storages that jars and stores write to), `readCookies`
    /// and `readCredentials` (at once, for APIs that do not wait otherwise), and `isStale`.
    ///
    /// - Parameters:
    ///   - configuration: of the first caller for a place, the others' is not looked at.
    ///   - report: hears what a person should know, that of the first caller alone; any thread, must
    ///     not block.
    package static func shared(
        _ configuration: StateConfiguration,
        report: @escaping @Sendable (StateEvent) -> Void = { _ in }
    ) -> SharedState {
        let made = SharedState(configuration, now: SystemClock().now(), report: report)
        while true {
            let states = self.states.withLock { $0 }
            // Looked up anew each time: directories may have been made since. There are few.
            let place = Place(configuration.directory)
            if let known = states.first(where: { Place($0.configuration.directory) == place }) {
                return known
            }
            let isAdded = self.states.withLock { current in
                // Another may have been quicker, perhaps with this very place.
                guard current.count == states.count else { return false }
                current.append(made)
                return true
            }
            if isAdded { return made }
        }
    }
}
