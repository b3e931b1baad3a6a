import Foundation
import LarderHTTP
import LarderPolicy

/// What a cache notes of a response that a program has stored beside what HTTP has a place for:
/// which kind of response it is, and what the program wants kept with it.
struct CacheNote {
    private enum Key {
        static let isHTTP = "http"
        static let url = "url"
        static let mimeType = "mime"
        static let length = "length"
        static let encoding = "encoding"
        static let status = "status"
        static let fields = "fields"
        static let varying = "varying"
        static let policy = "policy"
        static let userInfo = "info"
    }

    let userInfo: [AnyHashable: Any]?
    let storagePolicy: URLCache.StoragePolicy
    private var facts: [String: Any]

    init(_ cached: CachedURLResponse) {
        self.userInfo = cached.userInfo
        self.storagePolicy = cached.storagePolicy
        var facts: [String: Any] = [:]
        facts[Key.url] = cached.response.url?.withoutUserInformation.absoluteString ?? ""
        facts[Key.varying] = cached.varyingFields.map(Self.list)
        facts[Key.policy] = Int(cached.storagePolicy.rawValue)
        if let response = cached.response as? HTTPURLResponse {
            facts[Key.isHTTP] = true
            facts[Key.status] = response.statusCode
            facts[Key.fields] = Self.pairs(of: response).flatMap { [$0.name, $0.value] }
            // Of what was decoded it is not the length that the fields tell.
            if response.expectedContentLength == -1 { facts[Key.length] = -1 }
        } else {
            facts[Key.mimeType] = cached.response.mimeType
            facts[Key.encoding] = cached.response.textEncodingName
            facts[Key.length] = Int(clamping: cached.response.expectedContentLength)
        }
        self.facts = facts
    }

    /// What `encoded` has made; nil for anything else.
    init?(_ data: Data) {
        // The readers of other forms are for people's files, and go as deep as those are nested.
        guard PlainPropertyList(data) != nil,
            let facts = try? unsafe PropertyListSerialization.propertyList(
                from: data, options: [], format: nil) as? [String: Any]
        else { return nil }
        self.facts = facts
        self.userInfo = facts[Key.userInfo] as? [String: Any]
        self.storagePolicy =
            (facts[Key.policy] as? Int).flatMap { UInt(exactly: $0) }
            .flatMap { URLCache.StoragePolicy(rawValue: $0) } ?? .allowed
    }

    /// Whether it is a response of HTTP.
    var isHTTP: Bool { self.facts[Key.isHTTP] as? Bool ?? false }

    /// The lines of the request that the response was loaded for; nil where a program made it.
    var varyingFields: Fields? {
        guard let list = self.facts[Key.varying] as? [Any] else { return nil }
        var fields = Fields()
        for index in stride(from: 0, to: list.count - 1, by: 2) {
            guard let name = list[index] as? String, let value = list[index + 1] as? Data else {
                return nil
            }
            fields.append(name, Array(value))
        }
        return fields
    }

    private static func list(_ fields: Fields) -> [Any] {
        fields.lines.flatMap { line -> [Any] in
            [
                String(decoding: fields.name(of: line), as: UTF8.self),
                Data(fields.value(of: line)),
            ]
        }
    }

    /// As bytes that outlive the process: without what a property list cannot hold.
    ///
    /// - Parameter withFields: the fields of an HTTP response and of its request too, where nothing
    ///   else keeps them.
    func encoded(withFields: Bool) -> Data {
        var facts = self.facts
        if !withFields {
            facts[Key.fields] = nil
            facts[Key.status] = nil
            facts[Key.varying] = nil
        }
        let kept = self.userInfo.map { Self.kept($0) } ?? [:]
        if self.userInfo != nil { facts[Key.userInfo] = kept }
        let bytes = try? PropertyListSerialization.data(
            fromPropertyList: facts, format: .binary, options: 0)
        return bytes ?? Data()
    }

    /// The response that it was made of; nil where it tells of none.
    func response() -> URLResponse? {
        guard let url = self.location else { return nil }
        guard self.isHTTP else { return self.response(from: url) }
        let own = self.facts[Key.fields] as? [String] ?? []
        var fields: [String: String] = [:]
        for index in stride(from: 0, to: own.count - 1, by: 2) {
            fields[own[index]] = own[index + 1]
        }
        return HTTPURLResponse(
            url: url, statusCode: self.facts[Key.status] as? Int ?? 200,
            headerFields: fields,
            expectedLength: (self.facts[Key.length] as? Int).map { Int64($0) })
    }

    /// The same, of HTTP with the status and the fields that a store has kept.
    func response(_ head: ResponseHead) -> URLResponse? {
        guard let url = self.location else { return nil }
        guard self.isHTTP else { return self.response(from: url) }
        return HTTPURLResponse(
            url: url, head: head,
            bodyLength: self.facts[Key.length] == nil ? .none : .unknown)
    }

    private func response(from location: URL?) -> URLResponse {
        URLResponse(
            location: location,
            told: ResponseMetadata(
                mimeType: self.facts[Key.mimeType] as? String,
                textEncodingName: self.facts[Key.encoding] as? String,
                expectedContentLength: Int64(self.facts[Key.length] as? Int ?? -1)))
    }

    /// Where the response is said to be from, which may be nowhere; nil: nothing is said of it.
    private var location: URL?? {
        guard let text = self.facts[Key.url] as? String else { return nil }
        if text.isEmpty { return .some(nil) }
        return URL(string: text).map { .some($0) }
    }

    // MARK: Fields

    /// The fields of a response in octets: as they came, where they did.
    static func fields(of response: HTTPURLResponse) -> Fields {
        if let head = response.head { return head.fields }
        var fields = Fields()
        for (name, value) in self.pairs(of: response) { fields.append(name, value) }
        return fields
    }

    /// The fields of a response as text; what is no text is left out.
    private static func pairs(of response: HTTPURLResponse) -> [(name: String, value: String)] {
        response.allHeaderFields.compactMap { name, value in
            guard let name = name as? String else { return nil }
            return (name, value as? String ?? "\(value)")
        }.sorted { $0.name < $1.name }
    }

    // MARK: User info

    /// The part of it that a property list can hold.
    private static func kept(_ userInfo: [AnyHashable: Any]) -> [String: Any] {
        var kept: [String: Any] = [:]
        for (key, value) in userInfo {
            guard let key = key.base as? String else { continue }
            kept[key] = Self.kept(value, depth: 0)
        }
        return kept
    }

    /// How deep a value may be nested.
    private static let depthLimit = 32

    /// The value where all of it can be held; nil otherwise.
    ///
    /// Not asked of the property list's own check, which takes objects alone.
    private static func kept(_ value: Any, depth: Int) -> Any? {
        guard depth < Self.depthLimit else { return nil }
        switch value {
        case let text as String: return text
        case let data as Data: return data
        case let date as Date: return date
        case let number as NSNumber: return number
        case let list as [Any]:
            let kept = list.compactMap { Self.kept($0, depth: depth + 1) }
            return kept.count == list.count ? kept : nil
        case let table as [String: Any]:
            let kept = table.compactMapValues { Self.kept($0, depth: depth + 1) }
            return kept.count == table.count ? kept : nil
        default: return nil
        }
    }
}
