import Foundation

/// A dictionary of a program's that may hold secrets: nothing that shows it shows those.
struct VeiledEntries {
    var entries: [AnyHashable: Any]?

    private var shown: [String: String]? {
        self.entries.map { entries in
            let pairs = entries.map { key, value in
                let key = "\(key.base)"
                return (key, Self.isSecret(key) ? "(hidden)" : "\(value)")
            }
            return Dictionary(pairs) { first, _ in first }
        }
    }

    private static func isSecret(_ key: String) -> Bool {
        SecretFields.isSecret(key) || key.lowercased().contains("password")
    }
}

extension VeiledEntries: CustomStringConvertible, CustomReflectable {
    var description: String {
        guard let shown = self.shown else { return "nil" }
        return shown.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
            .joined(separator: ", ")
    }

    var customMirror: Mirror {
        Mirror(self, children: ["entries": self.shown as Any], displayStyle: .struct)
    }
}
