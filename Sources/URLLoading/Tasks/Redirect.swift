import Foundation
import LarderHTTP
import LarderSession

/// What a response with `Location` means for the request that it answers.
///
/// Which statuses are followed, by which method, and how `Location` is resolved is the engine's
/// (`Redirection`); here is what becomes of the request around it.
enum Redirect: Equatable {
    /// An ordinary response: no redirection, or one that leads nowhere that could be loaded.
    case none
    /// The request to go on with, and whether the content of the one before is to be sent again.
    case follow(URLRequest, keepsContent: Bool)
    case tooMany

    /// How many are followed, whoever says that they are.
    static let limit = Redirection.limit

    /// - Parameters:
    ///   - number: how many redirections were followed before.
    ///   - hasContent: the request that was answered had some.
    static func judge(
        _ head: ResponseHead, to request: URLRequest, number: Int, hasContent: Bool
    ) -> Redirect {
        guard head.status.isRedirection, let location = head.fields.first("Location"),
            !location.isEmpty, let url = request.url, let uri = self.target(of: url),
            let method = request.httpMethod
        else { return .none }
        let head = self.encoded(head)
        // Content that cannot be repeated is asked for anew.
        let origin = Redirection.Origin(
            uri: uri, method: Method(rawValue: method), hasContent: hasContent, mayRepeat: true,
            number: number, keepsHead: false)
        switch Redirection.judge(head, to: origin, permits: { _, _ in true }) {
        case .none, .passedOn: return .none
        case .tooMany: return .tooMany
        case .follows(let target):
            let fragment = self.fragment(of: head) ?? url.fragment(percentEncoded: true)
            let text = target.uri.description + (fragment.map { "#" + $0 } ?? "")
            guard let destination = URL(string: text) else { return .none }
            let next = self.request(
                after: request, at: destination, target,
                crossesOrigins: !uri.hasSameOrigin(as: target.uri))
            return .follow(next, keepsContent: hasContent && !target.dropsContent)
        }
    }

    private static func request(
        after request: URLRequest, at url: URL, _ target: Redirection.Target, crossesOrigins: Bool
    ) -> URLRequest {
        var next = request
        let url = crossesOrigins ? url : url.withLogin(of: request.url)
        next.url = url
        next.httpMethod = target.method.rawValue
        if request.mainDocumentURL == request.url { next.mainDocumentURL = url }
        if target.dropsContent {
            next.httpBody = nil
            next.httpBodyStream = nil
            self.remove(self.ofContent, from: &next)
        }
        if crossesOrigins { self.remove(self.ofOrigin, from: &next) }
        return next
    }

    private static func remove(_ names: Set<String>, from request: inout URLRequest) {
        for name in request.allHTTPHeaderFields?.keys.map({ $0 }) ?? []
        where names.contains(name.lowercased()) {
            request.allHTTPHeaderFields?.removeValue(forKey: name)
        }
    }

    /// What describes content that is not sent any more (RFC 9110 §15.4).
    private static let ofContent: Set<String> = [
        "content-length", "content-type", "content-encoding", "content-language",
        "content-location", "transfer-encoding", "digest", "content-digest",
    ]

    /// What was meant for the origin before, and for nobody else.
    private static let ofOrigin: Set<String> = [
        "authorization", "cookie", "proxy-authorization", "host",
    ]

    /// The head with every `Location` as a URI may be written: where origins write `/a b`, they
    /// mean `/a%20b`, by `/100%` `/100%25`, and by a host of other letters the one of `xn--`.
    private static func encoded(_ head: ResponseHead) -> ResponseHead {
        let locations = head.fields.values("Location")
        let percent = UInt8(ascii: "%")
        let isPlain = locations.allSatisfy { $0.allSatisfy { $0 != percent && self.mayStand($0) } }
        guard !isPlain else { return head }
        var head = head
        head.fields.remove("Location")
        for location in locations {
            let place = self.authority(in: location)
            var bytes = self.escaped(location[..<place.lowerBound])
            bytes += self.ofLetters(location[place])
            bytes += self.escaped(location[place.upperBound...])
            head.fields.append("Location", bytes)
        }
        return head
    }

    /// Where the authority of a reference lies, which is empty where there is none (RFC 3986 §4.2).
    private static func authority(in location: FieldValue) -> Range<Int> {
        let nowhere = location.startIndex..<location.startIndex
        guard let first = location.firstIndex(where: { "/?#".utf8.contains($0) }),
            location[first...].starts(with: "//".utf8),
            first == location.startIndex || location[first - 1] == ASCII.colon
        else { return nowhere }
        let rest = location[(first + 2)...]
        return rest.startIndex..<(rest.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex)
    }

    /// An authority whose host may be written in any letters (RFC 5891 §4).
    private static func ofLetters(_ authority: FieldValue) -> [UInt8] {
        let scheme = "http://"
        guard !authority.allSatisfy({ $0 < 0x80 }),
            let url = URL(string: scheme + String(decoding: authority, as: UTF8.self))
        else { return self.escaped(authority) }
        return Array(url.absoluteString.utf8.dropFirst(scheme.utf8.count))
    }

    /// Part of a reference, with escapes for what cannot stand there, and for each `%` that begins none.
    private static func escaped(_ part: FieldValue) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, byte) in zip(part.indices, part) {
            let next = part[index...].dropFirst().prefix(2)
            let beginsEscape = next.count == 2 && next.allSatisfy { ASCII.hexDigit($0) != nil }
            if byte == UInt8(ascii: "%") ? beginsEscape : self.mayStand(byte) {
                bytes.append(byte)
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                bytes += Array("%\(byte < 0x10 ? "0" : "")\(digits)".utf8)
            }
        }
        return bytes
    }

    /// Whether a byte is one of a URI (RFC 3986 §2), or a `%`.
    private static func mayStand(_ byte: UInt8) -> Bool {
        switch byte {
        case ...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
            UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"),
            UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: true
        }
    }

    /// The fragment of the `Location`; nil where it has none and inherits (RFC 9110 §10.2.2).
    private static func fragment(of head: ResponseHead) -> String? {
        guard let location = head.fields.first("Location"),
            let hash = location.firstIndex(of: UInt8(ascii: "#"))
        else { return nil }
        return String(decoding: location[(hash + 1)...], as: UTF8.self)
    }

    /// The URI that a URL names, without what is not sent.
    private static func target(of url: URL) -> TargetURI? {
        guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return nil }
        parts.fragment = nil
        parts.user = nil
        parts.password = nil
        return parts.string.flatMap { TargetURI(text: $0) }
    }
}

extension URL {
    /// One without a login with the user name and password of another: a reference that is relative
    /// means its base's (RFC 3986 §5.2.2).
    fileprivate func withLogin(of other: URL?) -> URL {
        guard let other, let from = URLComponents(url: other, resolvingAgainstBaseURL: true),
            let user = from.percentEncodedUser,
            var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        parts.percentEncodedUser = user
        parts.percentEncodedPassword = from.percentEncodedPassword
        return parts.url ?? self
    }
}
