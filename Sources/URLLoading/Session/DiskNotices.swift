import Foundation
import LarderCookies
import LarderCredentials
import LarderDisk
import LarderSession
import LarderState
import Synchronization

/// What a person should know of the disk: one line on standard error, by `NSLog`, for each matter and
/// place, and not again in that process.
///
/// There is nobody else to tell: the API has no errors for it, and everything goes on in memory.
enum DiskNotices {
    /// More would be noise.
    private static let limit = 64
    private static let said = Mutex<Set<String>>([])

    private static func say(_ matter: String, at place: String, _ cause: String) {
        let isNew = self.said.withLock { said in
            said.count < self.limit && said.insert("\(matter) \(place)").inserted
        }
        guard isNew else { return }
        let line = "URLLoading: \(matter) in \(place): \(cause)"
        NSLog(line.replacingOccurrences(of: "%", with: "%%"))
    }

    // MARK: Who has something to say

    static func cache(_ directory: String) -> @Sendable (DiskEvent) -> Void {
        { event in
            switch event {
            case .failed(let error):
                self.say(
                    "responses are kept in memory alone, not", at: directory, error.description)
            case .setAside(let name, let reason):
                self.say(
                    "responses could not be read, and were set aside,", at: directory,
                    "\(name): \(reason)")
            case .removalNotKept(let error):
                self.say(
                    "responses that were removed may come back", at: directory, error.description)
            case .discarded, .asideRemoved, .lost, .shrunk, .notShrunk, .full, .damaged,
                .failedAgain, .recovered, .settled, .opened:
                break
            }
        }
    }

    static func cookies(_ directory: String) -> @Sendable (CookieEvent) -> Void {
        { event in
            switch event {
            case .notRestored(let error), .notKept(let error):
                self.say("cookies are kept in memory alone, not", at: directory, error.detail)
            case .refused, .keptAgain: break
            }
        }
    }

    static func credentials(_ directory: String) -> @Sendable (CredentialStorageError) -> Void {
        { error in
            self.say("credentials are kept in memory alone, not", at: directory, error.detail)
        }
    }

    /// Notices of the file that cookies or credentials are read from.
    static func state(_ directory: String) -> @Sendable (StateEvent) -> Void {
        { event in
            switch event {
            case .setAside(let name, let reason):
                self.say(
                    "what was kept could not be read, and was set aside,", at: directory,
                    "\(name): \(reason)")
            case .unreadable(let records):
                self.say(
                    "what was kept can be read in part alone", at: directory,
                    "\(records) records were changed")
            case .rotationUnfinished(let key, let path, let cause):
                self.say(
                    "the key that opens what was kept is not in its place", at: path,
                    "it is in \(key): \(cause)")
            case .keyMade, .begunAnew, .missing, .rotationFinished, .rotationUndone: break
            }
        }
    }

    /// What was kept could not be read.
    static func unread(_ error: StateError, in directory: String) {
        self.say("what was kept cannot be read", at: directory, "\(error.cause) (\(error.remedy))")
    }
}
