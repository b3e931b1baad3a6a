import LarderCredentials
import LarderHTTP

extension RequestHead {
    /// Turns the user information of an http or https target into the client's credentials, unless it has
    /// sent some: clients without a notion of it leave that to the proxy (wget, w3m, lftp), and browsers
    /// do the same themselves.
    ///
    /// Throws `.userInfo` where no field can hold it (RFC 7617 §2).
    mutating func takeLogin() throws(HeadError) {
        guard let userInfo = self.userInfo else { return }
        self.userInfo = nil
        if self.fields.has(.authorization) { return }
        guard let login = PercentCoding.login(userInfo) else { throw Self.badLogin }
        let credential = Credential(
            user: login.user, password: Secret(login.password), persistence: .none)
        do throws(CredentialFault) {
            self.fields.append("Authorization", try Basic.fieldValue(for: credential))
        } catch {
            throw Self.badLogin
        }
    }

    private static var badLogin: HeadError {
        HeadError(
            status: HeadError.Reason.userInfo.status, reason: .userInfo,
            detail: "the target's user information is no login that a field can hold")
    }
}
