import Yams

/// What is wrong with a file, in words.
extension SettingsReader {
    mutating func reportUnknown(
        _ key: Node, path: String, prefix: String, label: String, paths: [String]
    ) {
        let siblings = paths.filter { $0.hasPrefix(prefix) }
            .compactMap { $0.dropFirst(prefix.count).split(separator: ".").first.map(String.init) }
        var message = "\(label)\(path): there is no such setting"
        let last = key.plain
        if let nearest = NearestName.of(last, among: siblings) {
            message += "; did you mean \"\(nearest)\"?"
        } else if let elsewhere = paths.first(where: {
            $0.hasSuffix(".\(last)") || $0.split(separator: ".").last.map(String.init) == last
        }) {
            message += "; did you mean \"\(label)\(elsewhere)\"?"
        } else {
            message += "; \"larder config settings\" lists all"
        }
        self.report(key, message)
    }

    mutating func report(_ node: Node, _ message: String) {
        self.report(at: node.mark, message)
    }

    /// Whether something wrong was told there.
    func hasProblem(at mark: Mark?) -> Bool {
        self.problems.contains { $0.line == mark?.line && $0.column == mark?.column }
    }

    /// Tells what is no mistake in itself but has no effect.
    mutating func warn(_ path: String, _ message: String) {
        let mark = self.mark(path)
        self.warnings.append(
            ConfigurationProblem(
                file: self.file, line: mark?.line ?? 0, column: mark?.column ?? 0,
                message: "\(path): \(message)"))
    }

    mutating func report(at mark: Mark?, _ message: String) {
        self.problems.append(
            ConfigurationProblem(
                file: self.file, line: mark?.line ?? 0, column: mark?.column ?? 0,
                message: message))
    }

    /// What the YAML parser says, as problems.
    func problems(of error: any Error) -> [ConfigurationProblem] {
        func at(_ mark: Mark?, _ message: String) -> [ConfigurationProblem] {
            [
                ConfigurationProblem(
                    file: self.file, line: mark?.line ?? 0, column: mark?.column ?? 0,
                    message: message)
            ]
        }
        switch error as? YamlError {
        case .duplicatedKeysInMapping(let keys, let context):
            return keys.sorted().flatMap {
                at(context.mark, "\"\($0)\" is given more than once in one place; keep one of them")
            }
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            return at(mark, "not YAML: \(problem)")
        case .reader(let problem, _, _, _):
            return at(nil, "not YAML: \(problem)")
        default:
            return at(nil, "not YAML")
        }
    }
}

extension Node {
    /// The key as it is written; a key that is no scalar is no name either.
    var plain: String { self.scalar?.string ?? "" }

    /// A value that was left out: `cache:` and nothing after it.
    var isEmptyScalar: Bool {
        guard let scalar = self.scalar else { return false }
        let isQuoted = scalar.style == .singleQuoted || scalar.style == .doubleQuoted
        return !isQuoted && (scalar.string.isEmpty || scalar.string == "~")
    }
}
