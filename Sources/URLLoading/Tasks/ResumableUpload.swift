import Foundation

/// What requests and responses of a resumable upload say
/// (draft-ietf-httpbis-resumable-upload-05, which servers know as interoperability version 6).
enum ResumableUpload {
    static let interopVersion = "6"

    /// What the next request of an upload is.
    enum Stage: Sendable, Equatable {
        /// The content as a whole (§4 of the draft).
        case creating
        /// Asks how much the server has (§5).
        case asking
        /// The content from an offset on, in bytes (§6).
        case appending(Int64)
    }

    /// The fields that a request has for its stage.
    static func fields(of stage: Stage) -> [(String, String)] {
        let version = ("Upload-Draft-Interop-Version", Self.interopVersion)
        switch stage {
        case .creating: return [version, ("Upload-Complete", "?1")]
        case .asking: return [version]
        case .appending(let offset):
            return [
                version, ("Upload-Complete", "?1"), ("Upload-Offset", String(offset)),
                ("Content-Type", "application/partial-upload"),
            ]
        }
    }

    /// Whether a server may be asked to keep what a request brings: not where the program speaks the draft
    /// itself.
    static func mayOffer(_ request: URLRequest) -> Bool {
        request.httpMethod != "GET"
            && ["Upload-Draft-Interop-Version", "Upload-Complete", "Upload-Offset"]
                .allSatisfy { request.value(forHTTPHeaderField: $0) == nil }
    }

    /// Where the server keeps the upload, by an informational response (§4.2).
    ///
    /// - Parameter url: of the request.
    /// - Returns: nil where it does not say; also where it is a place that was protected less.
    static func resource(by response: HTTPURLResponse, to url: URL) -> URL? {
        guard response.statusCode == 104,
            let location = response.value(forHTTPHeaderField: "Location"),
            let resource = URL(string: location, relativeTo: url)?.absoluteURL
                .withoutUserInformation,
            resource.isUploadable,
            url.scheme?.lowercased() != "https" || resource.scheme?.lowercased() == "https"
        else { return nil }
        return resource
    }

    /// What a response to the question how much there is means.
    enum State: Equatable {
        /// It has so many bytes, and wants the rest.
        case has(Int64)
        /// It has everything.
        case complete
        /// It does not know the upload, or asks for something else first.
        case unknown
        /// It says nothing that could be understood.
        case nonsense
    }

    static func state(by response: HTTPURLResponse) -> State {
        guard (200..<300).contains(response.statusCode) else { return .unknown }
        if response.value(forHTTPHeaderField: "Upload-Complete")?.trimmed == "?1" {
            return .complete
        }
        // A structured field: an integer of 15 digits at most (RFC 9651 §3.3.1).
        guard let text = response.value(forHTTPHeaderField: "Upload-Offset")?.trimmed,
            (1...15).contains(text.utf8.count),
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
            let offset = Int64(text)
        else { return .nonsense }
        return .has(offset)
    }

    /// Whether what was sent can still be gone on with behind a failure: the connection was it.
    static func mayResume(behind error: any Error) -> Bool {
        switch (error as? URLError)?.code {
        case .timedOut, .networkConnectionLost, .cannotConnectToHost, .cannotFindHost,
            .dnsLookupFailed, .notConnectedToInternet, .secureConnectionFailed, .cancelled:
            true
        default: false
        }
    }
}

extension String {
    fileprivate var trimmed: String { self.trimmingCharacters(in: .whitespaces) }
}
