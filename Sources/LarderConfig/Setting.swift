/// One row of the table of settings: what it is called, what it may hold, what it does.
///
/// `Section` is the part of `Settings` that the row's place lies in. The default is the value that
/// place has in a new section, so that it is written down once.
package struct Setting<Section: Sendable>: Sendable {
    /// The name within the section, parts separated by dots: `cache.memory`.
    package let path: String
    /// One word for the type of value.
    package let kind: String
    /// The allowed range or words, as text.
    package let bounds: String?
    package let isList: Bool
    /// Whether a reload puts a new value into force; otherwise that needs a restart.
    package let changesWhileRunning: Bool
    /// One paragraph for people.
    package let about: String
    /// What stands in the place of a value that is not set; nil where there always is one.
    package let absent: String?
    /// Reads the scalars into the section; answers which of them are wrong, and why.
    let accept: @Sendable ([String], inout Section) -> [ScalarProblem]
    /// The value as scalars.
    let show: @Sendable (Section) -> [String]
    /// An example, where the value is a mapping of plain values: each pair is read and shown as one
    /// scalar, `name: value`.
    var pairs: String?

    var isPairs: Bool { self.pairs != nil }

    /// The value as it would stand in the file.
    package func text(in section: Section) -> String {
        let scalars = self.show(section)
        if self.isPairs { return "{" + scalars.joined(separator: ", ") + "}" }
        guard self.isList else { return scalars.joined() }
        return "[" + scalars.joined(separator: ", ") + "]"
    }
}

/// A scalar that a setting does not take.
struct ScalarProblem {
    var index: Int
    var message: String
}

extension Setting {
    typealias Place<Value> = any WritableKeyPath<Section, Value> & Sendable

    /// A setting that always has a value.
    static func one<Value: SettingText>(
        _ path: String, _ place: Place<Value>, live: Bool = false, _ about: String
    ) -> Setting {
        Setting(
            path: path, kind: Value.kind, bounds: Self.words(Value.self), isList: false,
            changesWhileRunning: live, about: about, absent: nil,
            accept: { texts, section in
                Self.read(texts, as: Value.self) { section[keyPath: place] = $0 }
            },
            show: { [$0[keyPath: place].settingText] })
    }

    /// A setting that always has a value, from one bound to the other.
    static func one<Value: SettingText & Comparable>(
        _ path: String, _ place: Place<Value>, _ bounds: ClosedRange<Value>, live: Bool = false,
        _ about: String
    ) -> Setting {
        Setting(
            path: path, kind: Value.kind, bounds: Self.text(bounds), isList: false,
            changesWhileRunning: live, about: about, absent: nil,
            accept: { texts, section in
                Self.read(texts, as: Value.self, bounds) { section[keyPath: place] = $0 }
            },
            show: { [$0[keyPath: place].settingText] })
    }

    /// A setting that may be unset, which is written as `absent`.
    static func optional<Value: SettingText>(
        _ path: String, _ place: Place<Value?>, absent: String, live: Bool = false,
        _ about: String
    ) -> Setting {
        Setting(
            path: path, kind: Value.kind,
            bounds: Self.words(Value.self).map { "\(absent), \($0)" }, isList: false,
            changesWhileRunning: live, about: about, absent: absent,
            accept: { texts, section in
                if texts == [absent] {
                    section[keyPath: place] = nil
                    return []
                }
                return Self.read(texts, as: Value.self) { section[keyPath: place] = $0 }
            },
            show: { [$0[keyPath: place]?.settingText ?? absent] })
    }

    /// A setting that may be unset, which is written as `absent`, or lies within bounds.
    static func optional<Value: SettingText & Comparable>(
        _ path: String, _ place: Place<Value?>, _ bounds: ClosedRange<Value>, absent: String,
        live: Bool = false, _ about: String
    ) -> Setting {
        Setting(
            path: path, kind: Value.kind, bounds: "\(absent), or \(Self.text(bounds))",
            isList: false, changesWhileRunning: live, about: about, absent: absent,
            accept: { texts, section in
                if texts == [absent] {
                    section[keyPath: place] = nil
                    return []
                }
                return Self.read(texts, as: Value.self, bounds) { section[keyPath: place] = $0 }
            },
            show: { [$0[keyPath: place]?.settingText ?? absent] })
    }

    /// A setting that holds any number of values; one alone may be written without brackets.
    static func list<Value: SettingText>(
        _ path: String, _ place: Place<[Value]>, live: Bool = false, _ about: String
    ) -> Setting {
        Setting(
            path: path, kind: Value.kind, bounds: Self.words(Value.self), isList: true,
            changesWhileRunning: live, about: about, absent: nil,
            accept: { texts, section in
                var values: [Value] = []
                let problems = Self.read(texts, as: Value.self) { values.append($0) }
                if problems.isEmpty { section[keyPath: place] = values }
                return problems
            },
            show: { $0[keyPath: place].map(\.settingText) })
    }

    /// A setting that holds any number of pairs, written as a mapping.
    static func pairs<Value: SettingText>(
        _ path: String, _ place: Place<[Value]>, such example: String, live: Bool = false,
        _ about: String
    ) -> Setting {
        var setting = Self.list(path, place, live: live, about)
        setting.pairs = example
        return setting
    }

    private static func text<Value: SettingText>(_ bounds: ClosedRange<Value>) -> String {
        "\(bounds.lowerBound.settingText) to \(bounds.upperBound.settingText)"
    }

    private static func words<Value: SettingText>(_ type: Value.Type) -> String? {
        guard Value.kind == "word" else { return nil }
        return Value.expectation
    }

    private static func read<Value: SettingText>(
        _ texts: [String], as type: Value.Type, _ store: (Value) -> Void
    ) -> [ScalarProblem] {
        texts.enumerated().compactMap { index, text in
            do throws(SettingTextProblem) {
                store(try Value(settingText: text))
                return nil
            } catch {
                let cause = error.cause.map { " \($0)" } ?? ""
                let joint = cause.isEmpty ? " is not " : "; expected "
                return ScalarProblem(
                    index: index,
                    message: "\"\(error.shown ?? text)\"\(cause)\(joint)\(Value.expectation)")
            }
        }
    }

    private static func read<Value: SettingText & Comparable>(
        _ texts: [String], as type: Value.Type, _ bounds: ClosedRange<Value>,
        _ store: (Value) -> Void
    ) -> [ScalarProblem] {
        var outside: [ScalarProblem] = []
        let problems = Self.read(texts, as: Value.self) { value in
            guard !bounds.contains(value) else { return store(value) }
            outside.append(
                ScalarProblem(
                    index: 0,
                    message: "\(value.settingText) is out of range; allowed: \(Self.text(bounds))"))
        }
        return problems + outside
    }
}
