import LarderConfig
import LarderHTTP
import LarderPolicy
import Testing

@testable import LarderDaemon

@Suite("The presets in conf/presets")
struct PresetTests {
    private static let directory: String = {
        let parts = #filePath.split(separator: "/").dropLast(3)
        return "/" + parts.joined(separator: "/") + "/conf/presets"
    }()

    private static let names = ["debian", "pypi", "npm", "crates", "go", "oci"]

    private static func load(_ presets: [String]) throws -> LoadedSettings {
        try Configuration.parse(
            "preset-directory: \(self.directory)\npresets: [\(presets.joined(separator: ", "))]\n",
            file: "f", environment: ProcessEnvironment(["HOME": "/h"]))
    }

    struct Case: Sendable {
        let preset: String
        let url: String
        /// Fields of the response.
        let told: String
        let status: UInt16
        let rule: String?
        /// In seconds.
        let lifetime: Int64

        init(
            _ preset: String, _ url: String, _ told: String = "", status: UInt16 = 200,
            rule: String?, lifetime: Int64
        ) {
            self.preset = preset
            self.url = url
            self.told = told
            self.status = status
            self.rule = rule
            self.lifetime = lifetime
        }
    }

    static let year: Int64 = 365 * 86_400

    static let debian: [Case] = [
        Case(
            "debian", "http://deb.debian.org/debian/pool/main/c/curl/curl_8.5.0-2_amd64.deb",
            "max-age=2592000", rule: "debian-pool", lifetime: year),
        Case(
            "debian", "http://security.debian.org/debian-security/pool/updates/main/x/x_1.tar.xz",
            rule: "debian-pool", lifetime: year),
        Case(
            "debian", "http://archive.ubuntu.com/ubuntu/pool/main/b/bash/bash_5.2.dsc",
            rule: "debian-pool", lifetime: year),
        Case(
            "debian", "http://deb.debian.org/debian/pool/main/c/curl/curl_8.deb", status: 404,
            rule: "debian-pool", lifetime: 0),
        Case(
            "debian", "http://deb.debian.org/debian/pool/main/c/curl/", "max-age=60", rule: nil,
            lifetime: 60),
        Case(
            "debian", "http://deb.debian.org/debian/dists/stable/InRelease", "max-age=120",
            rule: "debian-indices", lifetime: 0),
        Case(
            "debian", "http://deb.debian.org/debian/dists/stable/main/binary-amd64/Packages.xz",
            rule: "debian-indices", lifetime: 0),
        Case(
            "debian",
            "http://deb.debian.org/debian/dists/stable/main/binary-amd64/by-hash/SHA256/00ff",
            rule: "debian-by-hash", lifetime: year),
        Case(
            "debian", "http://snapshot.debian.org/archive/debian/20240101T000000Z/dists/x/Release",
            rule: "debian-snapshot", lifetime: year),
        Case(
            "debian", "http://snapshot.debian.org/archive/debian/20240102T000000Z/x",
            "max-age=600", status: 302, rule: "debian-snapshot", lifetime: 600),
        Case(
            "debian", "http://mirror.example/debian/pool/main/c/curl/curl_8.deb", "max-age=9",
            rule: nil, lifetime: 9),
        Case(
            "debian", "http://notdebian.org/pool/x.deb", "max-age=9", rule: nil, lifetime: 9),
    ]

    static let languages: [Case] = [
        Case(
            "pypi", "https://files.pythonhosted.org/packages/ab/cd/ef/x-1.0-py3-none-any.whl",
            rule: "pypi-files", lifetime: year),
        Case(
            "pypi", "https://files.pythonhosted.org/packages/ab/cd/ef/x-1.0.whl.metadata",
            "max-age=60", rule: "pypi-files", lifetime: year),
        Case(
            "pypi", "https://pypi.org/simple/requests/", "max-age=3600", rule: "pypi-index",
            lifetime: 600),
        Case(
            "pypi", "https://pypi.org/simple/requests/", "max-age=60", rule: "pypi-index",
            lifetime: 60),
        Case(
            "pypi", "https://pypi.org/simple/nosuch/", status: 404, rule: "pypi-index", lifetime: 60
        ),
        Case("pypi", "https://pypi.org/project/requests/", "max-age=9", rule: nil, lifetime: 9),
        Case(
            "npm", "https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz", "max-age=300",
            rule: "npm-archives", lifetime: year),
        Case(
            "npm", "https://registry.npmjs.org/@types/node/-/node-20.0.0.tgz",
            rule: "npm-archives", lifetime: year),
        Case(
            "npm", "https://registry.npmjs.org/@types%2fnode", "max-age=3600",
            rule: "npm-documents", lifetime: 300),
        Case(
            "npm", "https://registry.npmjs.org/-/v1/search?text=x", "max-age=3600",
            rule: "npm-services", lifetime: 60),
        Case(
            "npm", "https://registry.npmjs.org/nosuch", status: 404, rule: "npm-documents",
            lifetime: 60),
        Case(
            "crates", "https://static.crates.io/crates/serde/serde-1.0.0.crate",
            rule: "crates-archives", lifetime: year),
        Case(
            "crates", "https://static.crates.io/crates/serde/1.0.0/download",
            rule: "crates-archives", lifetime: year),
        Case(
            "crates", "https://crates.io/api/v1/crates/serde/1.0.0/download", "max-age=9",
            status: 302, rule: nil, lifetime: 9),
        Case(
            "crates", "https://index.crates.io/se/rd/serde", "max-age=600", rule: "crates-index",
            lifetime: 60),
        Case(
            "crates", "https://static.rust-lang.org/dist/2024-05-02/rustc-1.78.0.tar.xz",
            rule: "rust-dated", lifetime: year),
        Case(
            "crates", "https://static.rust-lang.org/dist/channel-rust-stable.toml",
            "max-age=86400", rule: "rust-channels", lifetime: 600),
    ]

    static let others: [Case] = [
        Case(
            "go", "https://proxy.golang.org/golang.org/x/net/@v/v0.1.0.zip", "max-age=10800",
            rule: "go-versions", lifetime: year),
        Case(
            "go", "https://proxy.golang.org/golang.org/x/net/@v/v0.1.0.mod",
            rule: "go-versions", lifetime: year),
        Case(
            "go",
            "https://proxy.golang.org/golang.org/x/net/@v/v0.0.0-20200114155413-6afb5195e5aa.info",
            rule: "go-versions", lifetime: year),
        Case(
            "go", "https://proxy.golang.org/golang.org/x/net/@v/v0.1.0.info",
            rule: "go-releases", lifetime: 7 * 86_400),
        Case(
            "go", "https://proxy.golang.org/golang.org/x/net/@v/v1.2.x.info", "max-age=600",
            rule: "go-branches", lifetime: 60),
        Case(
            "go", "https://proxy.golang.org/golang.org/x/net/@v/master.info", "max-age=600",
            rule: "go-lists", lifetime: 60),
        Case(
            "go", "https://proxy.golang.org/golang.org/x/net/@v/list", "max-age=600",
            rule: "go-lists", lifetime: 60),
        Case(
            "go", "https://proxy.golang.org/golang.org/x/net/@latest", "max-age=600",
            rule: "go-lists", lifetime: 60),
        Case(
            "go", "https://proxy.golang.org/a.example/b/@v/list", status: 410, rule: "go-lists",
            lifetime: 60),
        Case(
            "go", "https://sum.golang.org/tile/8/0/x001/234", rule: "go-checksum-tiles",
            lifetime: year),
        Case(
            "go", "https://proxy.golang.org/sumdb/sum.golang.org/latest", "max-age=600",
            rule: "go-checksum-head", lifetime: 60),
        Case(
            "oci", "https://registry.example/v2/library/debian/blobs/sha256:00ff", "max-age=60",
            rule: "oci-blobs", lifetime: year),
        Case(
            "oci", "https://registry.example/v2/library/debian/blobs/sha256:00ff", "max-age=60",
            status: 307, rule: "oci-blobs", lifetime: 60),
        Case(
            "oci", "https://registry.example/v2/library/debian/manifests/sha256:00ff",
            rule: "oci-manifests-by-digest", lifetime: year),
        Case(
            "oci", "https://registry.example/v2/library/debian/manifests/stable", "max-age=3600",
            rule: "oci-tags", lifetime: 60),
        Case(
            "oci", "https://registry.example/v2/library/debian/tags/list", "max-age=3600",
            rule: "oci-tags", lifetime: 60),
        Case("oci", "https://registry.example/v2/", "max-age=9", rule: nil, lifetime: 9),
    ]

    @Test(
        "A URL, its rule, and the freshness lifetime that comes of it",
        arguments: [Self.debian, Self.languages, Self.others].flatMap(\.self))
    func rule(_ c: Case) throws {
        let loaded = try Self.load([c.preset])
        let session = try #require(loaded.settings.session(named: .default))
        let uri = try #require(TargetURI(text: c.url))
        let policy = loaded.policy(of: session).resolved(for: uri)
        #expect(policy.rule?.name == c.rule)
        var fields = Fields()
        if !c.told.isEmpty { fields.append("Cache-Control", c.told) }
        let now = Timestamp(seconds: 1_700_000_000)
        let freshness = Freshness.of(
            StoredHead(
                status: StatusCode(c.status), fields: fields, requestTime: now, responseTime: now),
            at: now, configuration: policy)
        #expect(freshness.lifetime == .seconds(c.lifetime))
    }

    @Test(
        "None sets aside what protects anybody: private, no-store, credentials, cookies",
        arguments: Self.names)
    func safe(_ name: String) throws {
        let loaded = try Self.load([name])
        #expect(!loaded.cacheRules.isEmpty)
        for located in loaded.cacheRules {
            #expect(located.rule.ignore.isEmpty, "\(located.name)")
            #expect(located.rule.name != nil, "line \(located.line)")
            #expect(located.file == "\(Self.directory)/\(name).yaml")
        }
    }

    @Test("All together have names that differ, and every one is documented")
    func together() throws {
        let loaded = try Self.load(Self.names)
        let names = loaded.cacheRules.map(\.name)
        #expect(Set(names).count == names.count)
        let about = SettingsTable.descriptions.first { $0.path == "presets" }?.about ?? ""
        for name in Self.names { #expect(about.contains(name), "\(name)") }
    }

    @Test("What forbids storing holds in every preset (RFC 9111 §3)")
    func storing() throws {
        let loaded = try Self.load(Self.names)
        let session = try #require(loaded.settings.session(named: .default))
        let policy = loaded.policy(of: session)
        let now = Timestamp(seconds: 1_700_000_000)
        for c in Self.debian + Self.languages + Self.others where c.status == 200 {
            let uri = try #require(TargetURI(text: c.url))
            let plain = Request(method: .get, uri: uri, fields: Fields())
            let known = Request(method: .get, uri: uri, fields: ["Authorization": "Bearer x"])
            func verdict(_ request: Request, _ fields: Fields) -> StorageVerdict {
                Storability.judge(
                    request: request, response: ResponseHead(status: .ok, fields: fields),
                    bodyLength: .known(1), now: now, configuration: policy.resolved(for: uri))
            }
            #expect(verdict(plain, ["Cache-Control": "private"]) == .notStorable(.responsePrivate))
            #expect(verdict(plain, ["Cache-Control": "no-store"]) == .notStorable(.responseNoStore))
            #expect(
                verdict(known, ["Cache-Control": "max-age=60"])
                    == .notStorable(.requestAuthorization))
        }
    }
}
