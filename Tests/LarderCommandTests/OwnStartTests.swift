import Foundation
import Testing

@testable import larder

@Suite("What the process was started with")
struct OwnStartTests {
    @Test("is, by the C library, what the kernel tells")
    func arguments() throws {
        let told = try String(contentsOfFile: "/proc/self/cmdline", encoding: .utf8)
        // A zero byte ends each.
        let texts = told.split(separator: "\0", omittingEmptySubsequences: false).dropLast()
        #expect(OwnStart.arguments == texts.map { Array($0.utf8) })
        #expect(OwnStart.words == texts.dropFirst().map(String.init))
    }
}
