import LarderCookies
import LarderHTTP
import SeededNumbers

/// The moment at which all tables are set: Tue, 14 Nov 2023 22:13:20 GMT.
let t0 = Timestamp(seconds: 1_700_000_000)

/// A small list of suffixes, of each kind that there is.
struct Suffixes: PublicSuffixes {
    private static let listed: Set<String> = ["com", "org", "test", "co.test", "github.test", "ck"]

    func isPublicSuffix(_ domain: String) -> Bool {
        if domain == "www.ck" { return false }
        let labels = domain.split(separator: ".")
        // `*.ck` stands for one label, as in the public list.
        return Self.listed.contains(domain) || labels.count == 1
            || labels.count == 2 && labels.last == "ck"
    }
}

func uri(_ text: String) -> TargetURI {
    let scheme: Scheme = text.hasPrefix("https") ? .https : text.hasPrefix("ftp") ? .ftp : .http
    let rest = text.dropFirst(scheme.rawValue.count + 3)
    let host = rest.prefix { $0 != "/" }
    let path = rest.dropFirst(host.count)
    return TargetURI(
        scheme: scheme, host: String(host), pathAndQuery: path.isEmpty ? "/" : String(path))
}

func context(
    _ text: String, site: SiteRelation = .sameSite, main: String? = nil, isHTTP: Bool = true
) -> CookieContext {
    CookieContext(uri: uri(text), site: site, mainDocumentHost: main, isHTTP: isHTTP)
}

func jar(_ policy: CookieAcceptPolicy = .always, limits: CookieLimits = CookieLimits()) -> CookieJar
{
    CookieJar(acceptPolicy: policy, limits: limits, suffixes: Suffixes())
}

extension SiteRelation {
    static let navigation = SiteRelation.crossSite(navigation: true, safeMethod: true)
    static let post = SiteRelation.crossSite(navigation: true, safeMethod: false)
    static let embedded = SiteRelation.crossSite(navigation: false, safeMethod: true)
}

extension CookieJar {
    /// Takes one line; the refusal, if any.
    @discardableResult
    mutating func take(
        _ line: String, _ context: CookieContext, at now: Timestamp = t0
    ) -> CookieOutcome {
        self.store(["Set-Cookie": line], for: context, at: now)[0]
    }

    /// What would be sent, as text.
    func sends(_ context: CookieContext, at now: Timestamp = t0) -> String {
        String(
            decoding: CookieField.value(of: self.cookies(for: context, at: now)), as: UTF8.self)
    }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension SplitMix64 {
    /// Damages text in a few places.
    mutating func mutated(_ text: String) -> [UInt8] {
        var out = Array(text.utf8)
        for _ in 0..<Int.random(in: 1...5, using: &self) where !out.isEmpty {
            let i = Int.random(in: out.indices, using: &self)
            switch Int.random(in: 0..<5, using: &self) {
            case 0: out[i] = UInt8.random(in: 0...255, using: &self)
            case 1: out.remove(at: i)
            case 2:
                out.insert(
                    contentsOf: [";", "=", ",", "\t", ".", "-"].randomElement(
                        using: &self)?.utf8.map { $0 } ?? [], at: i)
            case 3: out.removeSubrange(i..<min(i + 6, out.count))
            default: out.insert(contentsOf: out[i..<min(i + 12, out.count)], at: i)
            }
        }
        return out
    }
}
