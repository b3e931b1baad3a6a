import LarderControl

/// A credential as `larder credentials list` tells of it: everything but the secret.
struct CredentialRow: Encodable, Equatable {
    var name: String?
    var kind: String
    var user: String?
    var field: String?
    var host: String?
    var port: UInt16?
    var scheme: String?
    var realm: String?
    var method: String?
    var persistence: String
    var isDefault: Bool?

    init(_ record: CredentialRecord) {
        self.kind = record.kind
        self.user = record.user
        self.field = record.field
        self.persistence = record.persistence
        switch record.name {
        case .named(let name): self.name = name
        case .space(let space, let user):
            self.user = user
            self.host = space.host
            self.port = space.port
            self.scheme = space.isProxy ? "\(space.scheme)-proxy" : space.scheme
            self.realm = space.realm
            self.method = space.method
            self.isDefault = record.isDefault
        }
    }

    /// Reads as `https://host:443, realm "r", digest`.
    private var space: String {
        guard let host = self.host, let port = self.port, let scheme = self.scheme else {
            return ""
        }
        let realm = self.realm.map { ", realm \"\($0)\"" } ?? ""
        let isDefault = self.isDefault == true ? ", default" : ""
        let method = self.method == "default" ? "any method" : self.method ?? ""
        return "\(scheme)://\(host):\(port)\(realm), \(method)\(isDefault)"
    }

    static func table(_ rows: [CredentialRow], width: Int?) -> [String] {
        var table = Table(
            [
                .init(title: "NAME"), .init(title: "KIND"), .init(title: "USER OR FIELD"),
                .init(title: "SPACE", isElastic: true), .init(title: "KEPT"),
            ], width: width)
        var lines: [String] = []
        for row in rows {
            let cells = [
                row.name ?? "-", row.kind, row.user ?? row.field ?? "-", row.space,
                row.persistence,
            ]
            lines += table.add(cells.map { Printable.text($0) })
        }
        return lines + table.finish()
    }
}
