import Glibc
package import LarderConfig
import LarderState
import LarderTransfer

/// A try of the files that a configuration names, as the start would read them.
package struct NamedFiles {
    /// What the start would refuse.
    package private(set) var problems: [ConfigurationProblem] = []
    /// What this user cannot tell, or what may be there by the time of the start.
    package private(set) var warnings: [ConfigurationProblem] = []
    private let loaded: LoadedSettings

    /// The running proxy asks, as the user who starts it again.
    private let isProxy: Bool

    /// Reads them: those that say who clients are, certificates, and where the access log goes.
    ///
    /// Nothing is made or written.
    ///
    /// - Parameter isProxy: whether the running proxy asks: what it may not read it could not start with,
    ///   and where its access log goes it finds out by opening that.
    package init(trying loaded: LoadedSettings, isProxy: Bool = false) {
        self.loaded = loaded
        self.isProxy = isProxy
        for (index, listener) in loaded.settings.listeners.enumerated() {
            self.tryClients(of: listener.authentication, ofListener: index)
        }
        for session in loaded.settings.sessions { self.tryCertificates(of: session) }
        guard !isProxy, case .file(let path) = loaded.settings.log.accessDestination else { return }
        self.tryLog(path.text)
    }

    private mutating func tryClients(of settings: AuthenticationSettings, ofListener index: Int) {
        guard settings.isDemanded else { return }
        let files = FileAuthenticator.Files(settings)
        for (password, token) in [
            (files.passwordFile, nil), (nil, files.tokenFile),
        ] as [(String?, String?)] {
            do throws(CredentialFileError) {
                _ = try ClientRegister(passwordFile: password, tokenFile: token, key: KeyedDigest())
            } catch {
                let problem = self.loaded.problem(with: error, ofListener: index)
                self.add(problem, isUncertain: error.isForbidden && !self.isProxy, path: error.path)
            }
        }
    }

    private mutating func tryCertificates(of session: SessionSettings) {
        guard let path = session.caFile?.text else { return }
        do throws(CertificateFileError) {
            try CertificateFile.check(path)
        } catch {
            let problem = self.loaded.problem(
                at: "sessions.\(session.name.text).ca-file", "\(error)")
            // One that nothing leads to is not opened.
            let isUnopened = !self.loaded.settings.isReachable(session.name)
            self.add(
                problem, isUncertain: isUnopened || error.code == EACCES && !self.isProxy,
                path: path)
        }
    }

    /// A directory that is missing may be made by whoever starts the service, and the rights are those
    /// of another user there.
    private mutating func tryLog(_ path: String) {
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        let isThere = unsafe access(path, F_OK) == 0
        guard unsafe access(isThere ? path : "\(directory)/", isThere ? W_OK : W_OK | X_OK) != 0
        else { return }
        let cause = SystemError.text(errno)
        self.warnings.append(
            self.loaded.problem(
                at: "log.access.to",
                "\(isThere ? path : directory): cannot be written to by user \(geteuid()): "
                    + "\(cause); where that is so for the user of the proxy, it does not start"))
    }

    /// - Parameter isUncertain: another user may find nothing wrong.
    private mutating func add(
        _ problem: ConfigurationProblem, isUncertain: Bool, path: String
    ) {
        // systemd.exec(5), LoadCredential=: these are there while the service runs.
        guard isUncertain || path.hasPrefix("/run/credentials/") else {
            self.problems.append(problem)
            return
        }
        self.warnings.append(problem)
    }
}

extension LoadedSettings {
    /// What is wrong with a setting, at the place where it was given.
    func problem(at setting: String, _ message: String) -> ConfigurationProblem {
        var line = 0
        if case .file(let given) = self.origins[setting] { line = given }
        return ConfigurationProblem(
            file: self.file ?? "configuration", line: line, column: line == 0 ? 0 : 1,
            message: "\(setting): \(message)")
    }

    /// What is wrong with a file that says who a listener's clients are.
    func problem(
        with error: CredentialFileError, ofListener index: Int
    ) -> ConfigurationProblem {
        let settings = self.settings.listeners[index].authentication
        let name = settings.passwordFile?.text == error.path ? "password-file" : "token-file"
        return self.problem(at: "listeners[\(index)].authentication.\(name)", "\(error)")
    }
}
