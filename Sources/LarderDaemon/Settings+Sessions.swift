import Glibc
package import LarderConfig
import LarderCookies
package import LarderHTTP
package import LarderPolicy
package import LarderSession
package import LarderState
package import LarderTransfer

// What a session does beside caching, as the modules take it.

extension CookieHandling {
    package init(_ cookies: CookieSettings) {
        self.init(
            accept: CookieAcceptPolicy(cookies.accept),
            merging: CookieField.Merging(cookies.merging),
            showsSetCookie: cookies.showsSetCookie)
    }
}

extension CookieAcceptPolicy {
    init(_ word: CookieSettings.Accept) {
        self =
            switch word {
            case .always: .always
            case .never: .never
            case .onlyFromMainDocumentDomain: .onlyFromMainDocumentDomain
            }
    }
}

extension CookieField.Merging {
    init(_ word: CookieSettings.Merging) {
        self =
            switch word {
            case .clientFirst: .clientFirst
            case .jarReplaces: .jarReplaces
            case .clientOnly: .clientOnly
            }
    }
}

extension Fields {
    /// The fields that a session adds, as they stand in the file.
    package init(_ additional: [AdditionalField]) {
        self.init()
        for field in additional { self.append(field.name, field.value) }
    }
}

extension LoadedSettings {
    /// The rules by which a session adds credentials to requests.
    package func injections(of session: SessionSettings) -> InjectionRules {
        let rules = self.settings.injections.enumerated().compactMap { index, rule in
            rule.sessions.isEmpty || rule.sessions.contains(session.name)
                ? InjectionRule(rule, index: index, in: self) : nil
        }
        return InjectionRules(rules)
    }

    /// Where a session keeps its cookies and credentials; nil: in memory alone.
    package func stateConfiguration(of session: SessionSettings) -> StateConfiguration? {
        guard let directory = self.stateDirectory(of: session),
            let file = self.keyFile(of: session)
        else { return nil }
        let key =
            session.keyFile == nil
            ? KeySource.automatic(file: file, environment: Self.serviceEnvironment) : .file(file)
        return StateConfiguration(directory: directory, key: key)
    }

    /// What of this process's environment says where the credentials of its service are
    /// (systemd.exec(5)).
    private static var serviceEnvironment: [String: String] {
        let name = "CREDENTIALS_DIRECTORY"
        guard let value = unsafe getenv(name) else { return [:] }
        return [name: unsafe String(cString: value)]
    }

    /// By which proxies a session reaches which origins.
    ///
    /// Their credentials are names alone: the session that is opened with them reveals what is in them.
    package func parents(of session: SessionSettings) -> ParentRules {
        ParentRules(
            self.settings.parents(of: session.name).map { rule in
                let patterns = rule.destinations
                return ParentRules.Rule(via: .init(rule)) { host, port in
                    patterns.isEmpty || patterns.contains { $0.matches(host: host, port: port) }
                }
            })
    }
}

extension InjectionRule {
    /// nil for a rule that names no credential, which the file is refused for.
    fileprivate init?(_ rule: InjectionSettings, index: Int, in loaded: LoadedSettings) {
        guard let credential = rule.credential else { return nil }
        let name = "injections[\(index)]"
        var place = ""
        if case .file(let line) = loaded.origins["\(name).credential"] {
            place = "\(loaded.file ?? ""):\(line)"
        }
        self.init(
            name: name, place: place,
            hosts: rule.hosts.map { LarderPolicy.HostPattern($0.host, ports: $0.ports?.ports) },
            paths: rule.paths.map { Wildcard($0.pattern) },
            methods: rule.methods.map { Method(rawValue: $0.name) }, credential: credential.text,
            sendsBasic: rule.isPreemptive, allowsInsecure: rule.allowsInsecure)
    }
}

extension ParentRules.Via {
    fileprivate init(_ rule: ParentSettings) {
        guard case .proxy(let scheme, let host, let port) = rule.via else {
            self = .direct
            return
        }
        let kind: Parent.Kind =
            switch scheme {
            case .http: .http
            case .https: .https
            case .socks5: .socks5
            }
        self = .parent(
            Parent(
                kind: kind, host: host, port: port, authentication: .init(rule),
                credential: rule.credential.map { ParentCredential(name: $0.text) { nil } }))
    }
}

extension Parent.Authentication {
    /// Without a credential only a ticket of the machine's can be shown.
    fileprivate init(_ rule: ParentSettings) {
        self =
            switch rule.authentication {
            case .any: rule.credential == nil ? .none : .any
            case .basic: .basic
            case .digest: .digest
            case .ntlm: .ntlm
            case .negotiate: .negotiate
            }
    }
}

extension TLSVersions {
    package init(_ settings: TLSSettings) {
        self.init(
            minimum: TLSVersion(settings.minimum), maximum: settings.maximum.map { TLSVersion($0) })
    }
}

extension TLSVersion {
    fileprivate init(_ word: TLSVersionWord) {
        self =
            switch word {
            case .tls10: .v10
            case .tls11: .v11
            case .tls12: .v12
            case .tls13: .v13
            }
    }
}
