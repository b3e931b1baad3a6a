import Foundation
import Testing

@testable import URLLoading

@Suite("Requests (§7)")
struct MessagesRequestTests {
    static let url = URL(string: "http://example.org/a")!

    @Test("are GET, with 60 s that were not asked for, cookies and no fields")
    func defaults() {
        let request = URLRequest(url: Self.url)
        #expect(request.httpMethod == "GET")
        #expect(request.timeoutInterval == 60)
        #expect(!request.isTimeoutSet)
        #expect(request.allHTTPHeaderFields == nil)
        #expect(request.mainDocumentURL == nil)
        #expect(request.httpBody == nil && request.httpBodyStream == nil)
        #expect(request.cachePolicy == .useProtocolCachePolicy)
        #expect(request.networkServiceType == .default)
        #expect(request.attribution == .developer)
        #expect(request.httpShouldHandleCookies)
        #expect(request.allowsCellularAccess && request.allowsExpensiveNetworkAccess)
        #expect(request.allowsConstrainedNetworkAccess)
        #expect(!request.assumesHTTP3Capable && !request.requiresDNSSECValidation)
    }

    @Test("know whether their timeout was set, also to 60 s, also through bridging and archives")
    func timeout() throws {
        #expect(URLRequest(url: Self.url, timeoutInterval: 60).isTimeoutSet)
        #expect(!URLRequest(url: Self.url, cachePolicy: .returnCacheDataElseLoad).isTimeoutSet)
        var request = URLRequest(url: Self.url)
        request.timeoutInterval = 60
        #expect(request.isTimeoutSet)
        #expect((request as NSURLRequest as URLRequest).isTimeoutSet)
        #expect(!(NSURLRequest(url: Self.url) as URLRequest).isTimeoutSet)
        let archived = try #require(try Self.archived(request as NSURLRequest))
        #expect((archived as URLRequest).isTimeoutSet)
        let plain = try #require(try Self.archived(NSURLRequest(url: Self.url)))
        #expect(!(plain as URLRequest).isTimeoutSet)
        for (timeout, isKept) in [(TimeInterval.infinity, true), (0, true), (.nan, false)] {
            request.timeoutInterval = timeout
            let again = try #require(try Self.archived(request as NSURLRequest)) as URLRequest
            #expect(again.isTimeoutSet == isKept)
            #expect(!isKept || again.timeoutInterval == timeout)
        }
    }

    @Test(
        "normalise the methods that Foundation knows, and no other",
        arguments: [
            ("get", "GET"), ("gEt", "GET"), ("hEAD", "HEAD"), ("Post", "POST"), ("put", "PUT"),
            ("dELETe", "DELETE"), ("cOnNeCt", "CONNECT"), ("options", "options"),
            ("patch", "patch"), ("trace", "trace"), ("Foo", "Foo"), ("", "GET"), (nil, "GET"),
        ] as [(String?, String)])
    func methods(given: String?, kept: String) {
        var request = URLRequest(url: Self.url)
        request.httpMethod = "PURGE"
        request.httpMethod = given
        #expect(request.httpMethod == kept)
        let mutable = NSMutableURLRequest(url: Self.url)
        mutable.httpMethod = given
        #expect(mutable.httpMethod == kept)
    }

    @Test("compare field names without case, store them capitalised, join added values by a comma")
    func fields() {
        var request = URLRequest(url: Self.url)
        request.setValue("a", forHTTPHeaderField: "x-tRACE-1id")
        #expect(request.allHTTPHeaderFields == ["X-Trace-1Id": "a"])
        request.addValue("b", forHTTPHeaderField: "X-TRACE-1ID")
        #expect(request.allHTTPHeaderFields == ["X-Trace-1Id": "a,b"])
        #expect(request.value(forHTTPHeaderField: "x-trace-1id") == "a,b")
        request.setValue("c", forHTTPHeaderField: "x-trace-1id")
        #expect(request.allHTTPHeaderFields == ["X-Trace-1Id": "c"])
        request.setValue(nil, forHTTPHeaderField: "X-trace-1id")
        #expect(request.allHTTPHeaderFields == [:])
        request.setValue("d", forHTTPHeaderField: "")
        request.setValue("d", forHTTPHeaderField: "a:b")
        request.setValue("d", forHTTPHeaderField: "a\r\nb")
        #expect(request.allHTTPHeaderFields == [:])
        request.setValue("ü", forHTTPHeaderField: "ärger-x")
        #expect(request.value(forHTTPHeaderField: "Ärger-X") == "ü")
    }

    @Test("keep the dictionary that was set as it is, and find and replace in it without case")
    func wholeDictionary() {
        var request = URLRequest(url: Self.url)
        request.allHTTPHeaderFields = ["accept": "a", "ETAG": "b"]
        #expect(request.value(forHTTPHeaderField: "Accept") == "a")
        request.addValue("c", forHTTPHeaderField: "Etag")
        request.setValue("d", forHTTPHeaderField: "Accept")
        #expect(request.allHTTPHeaderFields == ["Accept": "d", "ETAG": "b,c"])
        for value in ["e", nil] {
            request.allHTTPHeaderFields = ["Accept": "a", "ACCEPT": "b", "accept": "c"]
            request.setValue(value, forHTTPHeaderField: "accept")
            let left: [String: String] = value.map { ["Accept": $0] } ?? [:]
            #expect(request.allHTTPHeaderFields == left)
        }
        request.allHTTPHeaderFields = nil
        #expect(request.allHTTPHeaderFields == nil)
        request.setValue(nil, forHTTPHeaderField: "a")
        #expect(request.allHTTPHeaderFields == nil)
    }

    @Test(
        "take no value that would break the request in two (RFC 9112 §11.1)",
        arguments: [
            "a\r\nb: c", "a\0", "a\rb", "a\r", "a\nb", "a\n", "\r\n", "a\r\n", "a\r\r",
            "a\r\n\r\n b",
            "a\n b",
        ])
    func splitting(value: String) {
        var request = URLRequest(url: Self.url)
        request.setValue(value, forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == nil)
        request.addValue(value, forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == nil)
        request.setValue("kept", forHTTPHeaderField: "Foo")
        request.setValue(value, forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == "kept")
    }

    @Test("take folded values", arguments: ["a\r\n\tb", "a\r\n b", "a\r\n b\r\n\tc", "a\tb", ""])
    func folded(value: String) {
        var request = URLRequest(url: Self.url)
        request.setValue(value, forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == value)
    }

    @Test("have one body: data or a stream")
    func bodies() {
        var request = URLRequest(url: Self.url)
        request.httpBody = Data("a".utf8)
        let stream = InputStream(data: Data())
        request.httpBodyStream = stream
        #expect(request.httpBody == nil && request.httpBodyStream === stream)
        request.httpBody = Data()
        #expect(request.httpBody == Data() && request.httpBodyStream == nil)
        request.httpBody = nil
        #expect(request.httpBody == nil && request.httpBodyStream == nil)
    }

    @Test("are values: a copy that is changed leaves the other as it was")
    func copies() {
        var first = URLRequest(url: Self.url)
        first.setValue("a", forHTTPHeaderField: "Accept")
        let second = first
        first.setValue("b", forHTTPHeaderField: "Accept")
        first.httpMethod = "POST"
        first.url = nil
        #expect(second.value(forHTTPHeaderField: "Accept") == "a")
        #expect(second.httpMethod == "GET" && second.url == Self.url)
        #expect(first.description == "url: nil" && second.description == "http://example.org/a")
    }

    @Test("are equal by what Foundation compares")
    func equality() {
        let plain = URLRequest(url: Self.url)
        func changed(_ change: (inout URLRequest) -> Void) -> URLRequest {
            var request = plain
            change(&request)
            return request
        }
        for same in [
            changed { $0.setValue("a", forHTTPHeaderField: "B") }, changed { $0.httpBody = Data() },
            changed { $0.timeoutInterval = 1 }, changed { $0.networkServiceType = .video },
        ] {
            #expect(same == plain && same.hashValue == plain.hashValue)
            #expect(same as NSURLRequest == plain as NSURLRequest)
        }
        for other in [
            changed { $0.url = nil }, changed { $0.mainDocumentURL = Self.url },
            changed { $0.httpMethod = "PUT" }, changed { $0.httpShouldHandleCookies = false },
            changed { $0.allowsCellularAccess = false },
            changed { $0.cachePolicy = .returnCacheDataDontLoad },
            changed { $0.httpBodyStream = InputStream(data: Data()) },
        ] {
            #expect(other != plain)
            #expect(other as NSURLRequest != plain as NSURLRequest)
        }
    }

    @Test("make a relative URL absolute where they are made, and keep one that is set")
    func relative() throws {
        let url = try #require(URL(string: "/get", relativeTo: Self.url))
        var request = URLRequest(url: url)
        #expect(
            request.url?.baseURL == nil && request.url?.relativeString == "http://example.org/get")
        request.url = url
        #expect(request.url?.baseURL == Self.url)
        #expect(NSURLRequest(url: url).url?.baseURL == nil)
    }

    @Test("show no credentials and no cookies when they are dumped")
    func hidden() {
        var request = URLRequest(url: Self.url)
        for name in ["Authorization", "Cookie", "Proxy-Authorization"] {
            request.setValue("hush", forHTTPHeaderField: name)
        }
        request.setValue("shown", forHTTPHeaderField: "Accept")
        var text = ""
        dump(request, to: &text)
        #expect(!text.contains("hush") && text.contains("shown"))
    }

    static func archived(_ request: NSURLRequest) throws -> NSURLRequest? {
        let data = try NSKeyedArchiver.archivedData(
            withRootObject: request, requiringSecureCoding: true)
        return try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURLRequest.self, from: data)
    }
}

@Suite("Requests as references (§7)")
struct MessagesRequestReferenceTests {
    static let url = URL(string: "https://example.org/b")!

    private static func full() -> NSMutableURLRequest {
        let request = NSMutableURLRequest(
            url: self.url, cachePolicy: .reloadRevalidatingCacheData, timeoutInterval: 7)
        request.mainDocumentURL = URL(string: "https://example.com/")
        request.httpMethod = "PUT"
        request.setValue("a", forHTTPHeaderField: "x-a")
        request.httpBody = Data([0, 255])
        request.networkServiceType = .responsiveAV
        request.attribution = .user
        request.allowsCellularAccess = false
        request.allowsConstrainedNetworkAccess = false
        request.assumesHTTP3Capable = true
        request.requiresDNSSECValidation = true
        request.httpShouldHandleCookies = false
        return request
    }

    private static func expectFull(_ request: URLRequest) {
        #expect(request == self.full() as URLRequest)
        #expect(request.cachePolicy == .reloadRevalidatingCacheData && request.timeoutInterval == 7)
        #expect(request.allHTTPHeaderFields == ["X-A": "a"] && request.httpBody == Data([0, 255]))
        #expect(request.networkServiceType == .responsiveAV && request.attribution == .user)
        #expect(!request.allowsCellularAccess && !request.allowsConstrainedNetworkAccess)
        #expect(request.allowsExpensiveNetworkAccess && request.assumesHTTP3Capable)
        #expect(request.requiresDNSSECValidation && !request.httpShouldHandleCookies)
    }

    @Test("survive copying, bridging and archiving whole")
    func whole() throws {
        let full = Self.full()
        Self.expectFull(full as URLRequest)
        let copy = try #require(full.copy() as? NSMutableURLRequest)
        #expect(copy !== full)
        Self.expectFull(copy as URLRequest)
        Self.expectFull(try #require(full.mutableCopy() as? NSMutableURLRequest) as URLRequest)
        Self.expectFull((full as URLRequest) as NSURLRequest as URLRequest)
        Self.expectFull(try #require((full as Any) as? URLRequest))
        let archived = try #require(try MessagesRequestTests.archived(full))
        Self.expectFull(archived as URLRequest)
    }

    @Test("are apart once copied")
    func apart() throws {
        let first = Self.full()
        let second = try #require(first.mutableCopy() as? NSMutableURLRequest)
        let third = try #require(first.copy() as? NSMutableURLRequest)
        third.httpMethod = "POST"
        let value = first as URLRequest
        first.httpMethod = "HEAD"
        second.url = nil
        #expect(second.httpMethod == "PUT" && first.url == Self.url && value.httpMethod == "PUT")
        #expect(second.description.contains("(null)"))
        #expect(first.description.contains("https://example.org/b"))
        #expect(third.httpMethod == "POST" && third.url == Self.url)
        let fixed = NSURLRequest(url: Self.url)
        #expect(fixed.copy() as? NSURLRequest === fixed)
    }

    @Test("carry the properties of URLProtocol through copies and bridging (§10)")
    func properties() throws {
        let request = NSMutableURLRequest(url: Self.url)
        URLProtocol.setProperty("a", forKey: "k", in: request)
        let value = request as URLRequest
        let back = try #require((value as NSURLRequest).mutableCopy() as? NSMutableURLRequest)
        #expect(URLProtocol.property(forKey: "k", in: value) as? String == "a")
        #expect(URLProtocol.property(forKey: "k", in: back as URLRequest) as? String == "a")
        URLProtocol.removeProperty(forKey: "k", in: back)
        #expect(URLProtocol.property(forKey: "k", in: back as URLRequest) == nil)
        #expect(URLProtocol.property(forKey: "k", in: value) as? String == "a")
        #expect(URLProtocol.property(forKey: "other", in: value) == nil)
    }

    @Test("are not read from archives of something else, or with nonsense in them")
    func foreignArchives() throws {
        let coder = NSKeyedArchiver(requiringSecureCoding: true)
        coder.encode(Int.max, forKey: "NS._cachePolicy")
        coder.encode(-5, forKey: "NS._networkServiceType")
        coder.encode("no dictionary" as NSString, forKey: "NS.url")
        let reader = try NSKeyedUnarchiver(forReadingFrom: coder.encodedData)
        reader.decodingFailurePolicy = .setErrorAndReturn
        let request = NSURLRequest(coder: reader)
        #expect(request == nil || request?.cachePolicy == .useProtocolCachePolicy)
        let empty = NSKeyedArchiver(requiringSecureCoding: true)
        #expect(
            NSURLRequest(coder: try NSKeyedUnarchiver(forReadingFrom: empty.encodedData)) == nil)
    }
}
