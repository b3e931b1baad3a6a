import Foundation

/// What a request says beside its target, its fields and its content, as resume data keeps it: a task
/// that goes on is to handle cookies, wait and be marked as the one before.
struct ResumedSettings: Sendable, Equatable {
    /// In seconds; nil: the session's.
    var timeoutInterval: TimeInterval?
    /// Without user and password.
    var mainDocumentURL: URL?
    var networkServiceType = URLRequest.NetworkServiceType.default
    var attribution = URLRequest.Attribution.developer
    /// The truth values of the request, as its archives have them.
    var flags = URLRequest(address: nil).flagBits

    /// Those of a request that says nothing of the kind.
    init() {}

    init(_ request: URLRequest) {
        if request.isTimeoutSet, !request.timeoutInterval.isNaN {
            self.timeoutInterval = request.timeoutInterval
        }
        // One that cannot be read again would take the rest of the blob with it.
        self.mainDocumentURL = request.mainDocumentURL.flatMap {
            URL(string: $0.withoutUserInformation.absoluteString)
        }
        self.networkServiceType = request.networkServiceType
        self.attribution = request.attribution
        self.flags = request.flagBits
    }

    func set(in request: inout URLRequest) {
        if let interval = self.timeoutInterval { request.timeoutInterval = interval }
        request.mainDocumentURL = self.mainDocumentURL
        request.networkServiceType = self.networkServiceType
        request.attribution = self.attribution
        request.flagBits = self.flags
    }
}

// MARK: - In the blob

// The last part, and only where it says anything: blobs without it are read as before, and earlier
// versions read those that need none.

extension SealedForm.Writer {
    mutating func append(_ settings: ResumedSettings) {
        guard settings != ResumedSettings() else { return }
        self.append(UInt64(settings.flags))
        // Not a number stands for none.
        self.append((settings.timeoutInterval ?? .nan).bitPattern)
        self.append(settings.mainDocumentURL?.absoluteString)
        self.append(UInt64(settings.networkServiceType.rawValue))
        self.append(UInt64(settings.attribution.rawValue))
    }
}

extension SealedForm.Reader {
    /// nil where they are cut off, or say what no request could; the default where there are none.
    mutating func settings() -> ResumedSettings? {
        var settings = ResumedSettings()
        guard !self.isAtEnd else { return settings }
        guard let flags = self.number().flatMap({ UInt(exactly: $0) }),
            flags & ~URLRequest.allFlagBits == 0,
            let interval = self.number().map({ TimeInterval(bitPattern: $0) }),
            let document = self.optionalText(),
            let service = self.number().flatMap({ UInt(exactly: $0) })
                .flatMap({ URLRequest.NetworkServiceType(rawValue: $0) }),
            let attribution = self.number().flatMap({ UInt(exactly: $0) })
                .flatMap({ URLRequest.Attribution(rawValue: $0) })
        else { return nil }
        if let document {
            guard let url = URL(string: document) else { return nil }
            settings.mainDocumentURL = url
        }
        settings.flags = flags
        settings.timeoutInterval = interval.isNaN ? nil : interval
        settings.networkServiceType = service
        settings.attribution = attribution
        return settings
    }
}
