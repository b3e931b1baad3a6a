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
        }) ?? NearestName.of(path, among: paths) {
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
        self.warnings.append(self.place(path).problem(in: self.file, message))
    }

    func place(_ path: String) -> SettingPlace {
        let mark = self.mark(path)
        return SettingPlace(path: path, line: mark?.line ?? 0, column: mark?.column ?? 0)
    }

    mutating func report(at mark: Mark?, _ message: String) {
        self.problems.append(
            ConfigurationProblem(
                file: self.file, line: mark?.line ?? 0, column: mark?.column ?? 0,
                message: message))
    }

    /// What the YAML parser says of a text, as problems.
    func problems(of error: any Error, in text: String) -> [ConfigurationProblem] {
        func at(_ line: Int, _ column: Int, _ message: String) -> ConfigurationProblem {
            ConfigurationProblem(file: self.file, line: line, column: column, message: message)
        }
        switch error as? YamlError {
        case .duplicatedKeysInMapping(let keys, let context):
            let mapping = BlockMapping(at: context.mark, in: text)
            return keys.sorted().map { key in
                let line = mapping.secondLine(of: key)
                return at(
                    line ?? context.mark.line, context.mark.column,
                    "\"\(key)\" is given more than once in one place; keep one of them")
            }
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            return [at(mark.line, mark.column, "not YAML: \(problem)")]
        case .reader(let problem, _, _, _):
            let place = Self.unreadable(in: text) ?? (0, 0)
            return [at(place.line, place.column, "not YAML: \(problem)")]
        default:
            return [at(0, 0, "not YAML")]
        }
    }

    /// The place of the first character that no YAML text has (YAML 1.2.2 §5.1).
    private static func unreadable(in text: String) -> (line: Int, column: Int)? {
        var (line, column) = (1, 1)
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x0A: (line, column) = (line + 1, 1)
            case 0x09, 0x0D, 0x20...0x7E, 0x85, 0xA0...0xFFFD, 0x10000...: column += 1
            default: return (line, column)
            }
        }
        return nil
    }
}

/// The lines of a mapping in block style, by which a key is found that the parser does not tell the
/// place of.
private struct BlockMapping {
    private let lines: ArraySlice<Substring>
    private let indent: Int

    /// - Parameter mark: one of its keys.
    init(at mark: Mark, in text: String) {
        let all = text.split(separator: "\n", omittingEmptySubsequences: false)
        let indent = mark.column - 1
        self.indent = indent
        guard all.indices.contains(mark.line - 1) else {
            self.lines = []
            return
        }
        // What is indented less is around it, but for the dash of the item that it may be.
        var begin = mark.line - 1
        while begin > 0, !Self.isLess(all[begin], indent) { begin -= 1 }
        if Self.isLess(all[begin], indent), !Self.isFree(all[begin], indent) { begin += 1 }
        let end = all[mark.line...].firstIndex { Self.isLess($0, indent) } ?? all.count
        self.lines = all[begin..<end]
    }

    private static func isLess(_ line: Substring, _ indent: Int) -> Bool {
        let content = line.drop { $0 == " " }
        return !content.isEmpty && !content.hasPrefix("#") && line.count - content.count < indent
    }

    /// Whether nothing but dashes stands before that column.
    private static func isFree(_ line: Substring, _ indent: Int) -> Bool {
        line.prefix(indent).allSatisfy { $0 == " " || $0 == "-" }
    }

    /// Where a key stands for the second time, from 1; nil where no two lines begin with it.
    func secondLine(of key: String) -> Int? {
        let places = self.lines.indices.filter { index in
            let line = self.lines[index]
            guard Self.isFree(line, self.indent) else { return false }
            let rest = line.dropFirst(self.indent)
            return ["", "\"", "'"].contains { quote in
                guard rest.hasPrefix(quote + key + quote) else { return false }
                let after = rest.dropFirst(key.count + 2 * quote.count).drop { $0 == " " }
                return after.hasPrefix(":")
            }
        }
        return places.count > 1 ? places[places.startIndex + 1] + 1 : nil
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
