import Foundation

extension URLError {
    /// A failure of a task, with what programs look for: the URL under both keys, and a description.
    ///
    /// Errors end up in logs, so the URL is told without a password.
    static func failing(
        _ code: URLError.Code, url: URL?, adding more: [String: Any] = [:]
    ) -> URLError {
        var facts = more
        if let url = url?.withoutPassword {
            facts[NSURLErrorFailingURLErrorKey] = facts[NSURLErrorFailingURLErrorKey] ?? url
            facts[TaskFailure.urlText] = facts[TaskFailure.urlText] ?? url.absoluteString
        }
        facts[NSLocalizedDescriptionKey] =
            facts[NSLocalizedDescriptionKey] ?? TaskFailure.description(of: code)
        return URLError(code, userInfo: facts)
    }

    /// This error with what it lacks of that.
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
        self.descriptions[code] ?? "the request failed (\(code.rawValue))"
    }

    /// By `URLError.Code`: of the constants, Foundation's on Linux for certificates are one off.
    private static let descriptions: [URLError.Code: String] = [
        .cancelled: "cancelled",
        .badURL: "bad URL",
        .timedOut: "the request timed out",
        .unsupportedURL: "unsupported URL",
        .cannotFindHost: "a server with that host name could not be found",
        .cannotConnectToHost: "could not connect to the server",
        .networkConnectionLost: "the network connection was lost",
        .dnsLookupFailed: "the host name could not be looked up",
        .httpTooManyRedirects: "too many HTTP redirects",
        .resourceUnavailable: "resource unavailable",
        .notConnectedToInternet: "there is no way to the network",
        .redirectToNonExistentLocation: "redirected to nowhere",
        .badServerResponse: "bad response from the server",
        .userCancelledAuthentication: "the authentication was cancelled",
        .userAuthenticationRequired: "authentication is required",
        .zeroByteResource: "resource of no bytes",
        .cannotDecodeRawData: "the data could not be decoded",
        .cannotDecodeContentData: "the content could not be decoded",
        .cannotParseResponse: "the response could not be parsed",
        .fileDoesNotExist: "the file does not exist",
        .fileIsDirectory: "the file is a directory",
        .noPermissionsToReadFile: "no permission to read the file",
        .dataLengthExceedsMaximum: "resource exceeds maximum size",
        .secureConnectionFailed: "no secure connection could be made",
        .serverCertificateHasBadDate: "the server's certificate has expired",
        .serverCertificateUntrusted: "the server's certificate is not trusted",
        .serverCertificateHasUnknownRoot:
            "the server's certificate was issued by nobody known",
        .serverCertificateNotYetValid: "the server's certificate is not valid yet",
        .clientCertificateRejected: "the client certificate was refused",
        .clientCertificateRequired: "the server asks for a client certificate",
        .cannotCreateFile: "the file could not be made",
        .cannotOpenFile: "the file could not be opened",
        .cannotCloseFile: "the file could not be closed",
        .cannotWriteToFile: "the file could not be written",
        .cannotRemoveFile: "the file could not be removed",
        .cannotMoveFile: "the file could not be moved",
        .requestBodyStreamExhausted: "the body's stream is at its end",
        .backgroundSessionRequiresSharedContainer:
            "there are no background sessions on Linux",
    ]
}
