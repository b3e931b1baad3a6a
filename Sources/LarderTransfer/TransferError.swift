import CCurl
import Glibc

/// Why the machinery of an upstream could not be set up.
package struct TransferError: Error, Hashable, Sendable {
    package enum Code: Hashable, Sendable {
        /// libcurl refused to initialise, or an option that this build depends on.
        case library
        /// The kernel refused a descriptor.
        case descriptor
        case thread
        /// The file of certificates is of no use.
        case certificates
    }

    package var code: Code
    package var detail: String

    package init(_ code: Code, detail: String) {
        self.code = code
        self.detail = detail
    }

    /// An error of the kernel, in its own words.
    static func system(_ code: Code, _ what: String, _ number: Int32) -> TransferError {
        TransferError(code, detail: "\(what): \(self.text(of: number))")
    }

    /// What the system calls an `errno`.
    static func text(of number: Int32) -> String {
        unsafe strerror(number).map { unsafe String(cString: $0) } ?? "\(number)"
    }

    static func library(_ what: String, _ code: CURLcode) -> TransferError {
        let text = unsafe curl_easy_strerror(code).map { unsafe String(cString: $0) } ?? ""
        return TransferError(.library, detail: "\(what): \(text) (\(code.rawValue))")
    }

    static func library(_ what: String, _ code: CURLMcode) -> TransferError {
        let text = unsafe curl_multi_strerror(code).map { unsafe String(cString: $0) } ?? ""
        return TransferError(.library, detail: "\(what): \(text) (\(code.rawValue))")
    }
}
