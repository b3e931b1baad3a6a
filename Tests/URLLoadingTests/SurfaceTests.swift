import Foundation
import Testing
import URLLoading

@Suite("The surface of the URL Loading System")
struct SurfaceTests {
    @Test("has Apple's raw values")
    func rawValues() {
        #expect(URLSession.ResponseDisposition.becomeDownload.rawValue == 2)
        #expect(URLSessionTask.State.canceling.rawValue == 2)
        #expect(NSURLRequest.CachePolicy.reloadRevalidatingCacheData.rawValue == 5)
    }
}
