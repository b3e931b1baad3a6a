import Foundation

extension URL {
    /// Whether its scheme is http or https, written as it nearly always is; false says nothing.
    ///
    /// `scheme` makes a string of it, at four times the cost, and every request asks three times.
    var isPlainlyWeb: Bool {
        let text = self.absoluteString.utf8
        return text.starts(with: "http:".utf8) || text.starts(with: "https:".utf8)
    }
}
