import Foundation

extension URLError {
    /// A failure of a task, with what programs look for: the URL under both keys, a description, and
    /// what caused it.
    ///
    /// Errors end up in logs, so the URL is told without a password.
    static func failing(
        _ code: URLError.Code, url: URL?, underlying: (any Error)? = nil,
        adding more: [String: Any] = [:]
    ) -> URLError {
        var facts = more
        if let url = url?.withoutPassword {
            facts[NSURLErrorFailingURLErrorKey] = facts[NSURLErrorFailingURLErrorKey] ?? url
            facts[TaskFailure.urlText] = facts[TaskFailure.urlText] ?? url.absoluteString
        }
        if let underlying {
            facts[NSUnderlyingErrorKey] = facts[NSUnderlyingErrorKey] ?? underlying
        }
        facts[NSLocalizedDescriptionKey] =
            facts[NSLocalizedDescriptionKey] ?? TaskFailure.description(of: code)
        return URLError(code, userInfo: facts)
    }

    /// The same with what it lacks of that.
    func completed(for url: URL?) -> URLError {
        Self.failing(self.code, url: url, adding: self.userInfo)
    }
}

/// How the errors of tasks read.
enum TaskFailure {
    /// The value of `NSURLErrorFailingURLStringErrorKey`, which Foundation deprecates, and which
    /// programs still read.
    static let urlText = "NSErrorFailingURLStringKey"

    /// What a program's user reads where nobody has said it better.
    static func description(of code: URLError.Code) -> String {
        self.descriptions[code.rawValue] ?? "the request failed (\(code.rawValue))"
    }

    private static let descriptions: [Int: String] = [
        NSURLErrorCancelled: "cancelled",
        NSURLErrorBadURL: "bad URL",
        NSURLErrorTimedOut: "the request timed out",
        NSURLErrorUnsupportedURL: "unsupported URL",
        NSURLErrorCannotFindHost: "a server with that host name could not be found",
        NSURLErrorCannotConnectToHost: "could not connect to the server",
        NSURLErrorNetworkConnectionLost: "the network connection was lost",
        NSURLErrorDNSLookupFailed: "the host name could not be looked up",
        NSURLErrorHTTPTooManyRedirects: "too many HTTP redirects",
        NSURLErrorResourceUnavailable: "resource unavailable",
        NSURLErrorNotConnectedToInternet: "there is no way to the network",
        NSURLErrorRedirectToNonExistentLocation: "redirected to nowhere",
        NSURLErrorBadServerResponse: "bad response from the server",
        NSURLErrorUserCancelledAuthentication: "the authentication was cancelled",
        NSURLErrorUserAuthenticationRequired: "authentication is required",
        NSURLErrorZeroByteResource: "resource of no bytes",
        NSURLErrorCannotDecodeRawData: "the data could not be decoded",
        NSURLErrorCannotDecodeContentData: "the content could not be decoded",
        NSURLErrorCannotParseResponse: "the response could not be parsed",
        NSURLErrorFileDoesNotExist: "the file does not exist",
        NSURLErrorFileIsDirectory: "the file is a directory",
        NSURLErrorNoPermissionsToReadFile: "no permission to read the file",
        NSURLErrorDataLengthExceedsMaximum: "resource exceeds maximum size",
        NSURLErrorSecureConnectionFailed: "no secure connection could be made",
        NSURLErrorServerCertificateHasBadDate: "the server's certificate has expired",
        NSURLErrorServerCertificateUntrusted: "the server's certificate is not trusted",
        NSURLErrorServerCertificateHasUnknownRoot:
            "the server's certificate was issued by nobody known",
        NSURLErrorServerCertificateNotYetValid: "the server's certificate is not valid yet",
        NSURLErrorClientCertificateRejected: "the client certificate was refused",
        NSURLErrorClientCertificateRequired: "the server asks for a client certificate",
        NSURLErrorCannotCreateFile: "the file could not be made",
        NSURLErrorCannotOpenFile: "the file could not be opened",
        NSURLErrorCannotCloseFile: "the file could not be closed",
        NSURLErrorCannotWriteToFile: "the file could not be written",
        NSURLErrorCannotRemoveFile: "the file could not be removed",
        NSURLErrorCannotMoveFile: "the file could not be moved",
        NSURLErrorRequestBodyStreamExhausted: "the body's stream is at its end",
        NSURLErrorBackgroundSessionRequiresSharedContainer:
            "there are no background sessions on Linux",
    ]
}
