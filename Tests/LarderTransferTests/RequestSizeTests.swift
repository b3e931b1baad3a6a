import LarderHTTP
import Testing

@testable import LarderTransfer

@Suite("Request heads that libcurl would not send whole")
struct RequestSizeTests {
    /// The lengths of the fields' values, whether libcurl leaves long ones out, and what is said.
    static let cases: [([Int], Bool, String?)] = [
        ([20], true, nil),
        ([305_900], true, nil),
        ([306_001], true, "a field of more than 300 KB"),
        ([306_001], false, nil),
        ([10, 400_000, 10], true, "a field of more than 300 KB"),
        // Many that are short are another matter.
        ([300_000, 300_000, 300_000], true, nil),
        ([300_000, 300_000, 300_000, 300_000], true, "a request head of more than 1 MB"),
        ([1_000_001], false, "a request head of more than 1 MB"),
    ]

    @Test("are refused (Curl_add_custom_headers of libcurl 8.14)", arguments: Self.cases)
    func size(_ lengths: [Int], _ omitsLongFields: Bool, _ said: String?) {
        var request = Request(
            uri: TargetURI(scheme: .http, host: "h", port: 80, pathAndQuery: "/"))
        for (i, length) in lengths.enumerated() {
            request.fields.append("X-\(i)", [UInt8](repeating: 97, count: length))
        }
        do throws(UpstreamFailure) {
            try RequestChecks.checkSize(request, omitsLongFields: omitsLongFields)
            #expect(said == nil)
        } catch {
            #expect(error.kind == .requestHeadTooLarge && error.party == .client)
            #expect(said.map { error.detail.hasPrefix($0) } == true, "\(error.detail)")
        }
    }
}
