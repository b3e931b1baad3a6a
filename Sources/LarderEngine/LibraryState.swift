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
    /// - Parameter configuration: of the first caller for a place, the others' is not looked at.
    package static func shared(_ configuration: StateConfiguration) -> SharedState {
        let now = SystemClock().now()
        return self.states.withLock { states in
            // Made anew each time: directories may have been made since. There are few.
            let place = Place(configuration.directory)
            if let known = states.first(where: { Place($0.configuration.directory) == place }) {
                return known
            }
            let made = SharedState(configuration, now: now)
            states.append(made)
            return made
        }
    }
}
