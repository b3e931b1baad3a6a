import Glibc

/// What an `errno` means, in words.
package enum SystemError {
    package static func text(_ code: CInt) -> String {
        // glibc's strerror(3) keeps its buffer by thread since 2.32.
        unsafe strerror(code).map { unsafe String(cString: $0) } ?? "error \(code)"
    }
}
