import Foundation
import LarderHTTP
import Testing

@testable import URLLoading

@Suite("Responses (§7)")
struct MessagesResponseTests {
    static let url = URL(string: "https://example.org/dir/name.txt?q")!

    @Test("keep what they are made with, and compare by it")
    func plain() {
        func response(
            _ path: String = "a", _ type: String? = "a/B", _ length: Int = 3, _ name: String? = "u"
        ) -> URLResponse {
            URLResponse(
                url: URL(string: "http://h/\(path)")!, mimeType: type,
                expectedContentLength: length,
                textEncodingName: name)
        }
        #expect(response().mimeType == "a/B" && response().textEncodingName == "u")
        #expect(response().expectedContentLength == 3)
        #expect(response() == response() && response().hash == response().hash)
        for other in [
            response("b"), response("a", nil), response("a", "a/B", -1),
            response("a", "a/B", 3, nil),
        ] {
            #expect(response() != other)
        }
        #expect(!response().isEqual(NSObject()) && !response().isEqual(nil))
        #expect(response().copy() as? URLResponse == response())
    }

    @Test(
        "propose the last part of the URL's path as a name",
        arguments: [
            ("a/test/name.ext?x=y", "name.ext"), ("a://bar", "Unknown"), ("https://h/", "Unknown"),
            ("https://h/a/..", "Unknown"), ("https://h/%2e%2e%2fetc%2fpasswd", ".._etc_passwd"),
            ("https://h/a%00b%0A", "ab"), ("https://h/x/", "x"),
        ])
    func plainNames(url: String, name: String) {
        let response = URLResponse(
            url: URL(string: url)!, mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
        #expect(response.suggestedFilename == name)
    }

    @Test(
        "propose what Content-Disposition says (RFC 6266), made harmless",
        arguments: [
            ("attachment; filename=\"fname.ext\"", "fname.ext"),
            ("attachment; filename=genome.jpeg; modification-date=\"Wed, 12\";", "genome.jpeg"),
            ("attachment; filename=\";.ext\"", ";.ext"),
            ("attachment; aa=bb\\; filename=\"no.ext\"; filename=\"yes.ext\"; cc=d", "yes.ext"),
            ("attachment; FileName = \"a\\\"b\"", "a\"b"),
            ("attachment; filename=\"/a/b/name\"", "_a_b_name"),
            ("attachment; filename=\"a/../b/name\"", "a_.._b_name"),
            ("attachment; filename=\"..\"", "name.txt"), ("attachment; filename=\"\"", "name.txt"),
            ("inline", "name.txt"), ("", "name.txt"), (";;;=;=x", "name.txt"),
            ("attachment; filename=no; filename*=UTF-8''%e2%82%ac%20rates.txt", "€ rates.txt"),
            ("attachment; filename*=iso-8859-1'en'%A3%20rates", "£ rates"),
            ("attachment; filename*=UTF-8''%2e%2e%2fx; filename=y", ".._x"),
            ("attachment; filename*=UTF-8''%ff; filename=y", "y"),
            ("attachment; filename*=UTF-8''%e2%8; filename=y", "y"),
            ("attachment; filename*=koi8-r''x; filename=y", "y"),
            ("attachment; filename*=x; filename=y", "y"),
        ])
    func disposition(field: String, name: String) throws {
        let response = try #require(
            HTTPURLResponse(
                url: Self.url, statusCode: 200, httpVersion: nil,
                headerFields: ["content-disposition": field]))
        #expect(response.suggestedFilename == name)
    }

    @Test("cut proposed names to what file systems take, and keep the extension")
    func longNames() throws {
        let long = String(repeating: "ü", count: 400) + ".tar"
        let response = try #require(
            HTTPURLResponse(
                url: Self.url, statusCode: 200, httpVersion: nil,
                headerFields: ["Content-Disposition": "attachment; filename=\"\(long)\""]))
        let name = try #require(response.suggestedFilename)
        #expect(name.utf8.count <= 255 && name.utf8.count > 250)
        #expect(name.hasPrefix("üü") && name.hasSuffix("ü.tar"))
    }

    @Test(
        "read media type and charset, in lower case",
        arguments: [
            ("text/HTML; charset=ISO-8859-4", "text/html", "iso-8859-4"),
            ("text/html", "text/html", nil), ("Text/Html ;Charset=\"UTF-8\"", "text/html", "utf-8"),
            ("", nil, nil), (";charset=a", nil, "a"), ("a/b;charset=", "a/b", nil),
            ("a/b; x=\";charset=no\"; charset=yes", "a/b", "yes"), ("a/b, c/d", "a/b", nil),
        ] as [(String, String?, String?)])
    func mediaTypes(field: String, type: String?, charset: String?) throws {
        let response = try #require(
            HTTPURLResponse(
                url: Self.url, statusCode: 200, httpVersion: nil,
                headerFields: ["CONTENT-type": field]))
        #expect(response.mimeType == type && response.textEncodingName == charset)
    }

    @Test(
        "expect as many bytes as Content-Length says, else -1",
        arguments: [
            ("997", 997), ("0", 0), (" 5 ", 5), ("997, 997", 997), ("997, 998", -1), ("-1", -1),
            ("+5", -1), ("0x10", -1), ("", -1), ("99999999999999999999", -1), ("5,", -1),
        ])
    func lengths(field: String, length: Int64) throws {
        let response = try #require(
            HTTPURLResponse(
                url: Self.url, statusCode: 200, httpVersion: nil,
                headerFields: ["Content-Length": field, "Content-Encoding": "deflate"]))
        #expect(response.expectedContentLength == length)
    }

    @Test("capitalise field names, but for X- and WWW-Authenticate")
    func capitalised() throws {
        let response = try #require(
            HTTPURLResponse(
                url: Self.url, statusCode: 302, httpVersion: nil,
                headerFields: [
                    "location": "l", "ETAG": "e", "x-Own": "x", "X-UP": "u", "": "none",
                    "www-authenticate": "w",
                ]))
        #expect(
            response.allHeaderFields as? [String: String] == [
                "Location": "l", "Etag": "e", "x-Own": "x", "X-UP": "u", "WWW-Authenticate": "w",
            ])
        #expect(response.value(forHTTPHeaderField: "LOCATION") == "l")
        #expect(response.value(forHTTPHeaderField: "X-own") == "x")
        #expect(response.value(forHTTPHeaderField: "none") == nil)
    }

    @Test("are read from a received head when they are asked, repeated fields joined")
    func received() {
        var fields: Fields = [
            "content-type": "Text/Plain; charset=UTF-8", "set-cookie": "a=1", "X-a": "1",
            "Set-Cookie": "b=2", "x-A": "2", "etag": "\"e\"",
        ]
        fields.append("server", [0xFC])
        fields.append("via", "ü")
        let response = HTTPURLResponse(
            url: Self.url, head: ResponseHead(status: StatusCode(999), fields: fields),
            bodyLength: .known(12))
        #expect(response.statusCode == 999 && response.expectedContentLength == 12)
        #expect(response.value(forHTTPHeaderField: "SET-COOKIE") == "a=1, b=2")
        #expect(response.value(forHTTPHeaderField: "Content-Length") == "12")
        #expect(response.value(forHTTPHeaderField: "Server") == "ü")
        #expect(response.mimeType == "text/plain" && response.textEncodingName == "utf-8")
        #expect(
            response.allHeaderFields as? [String: String] == [
                "Content-Type": "Text/Plain; charset=UTF-8", "Set-Cookie": "a=1, b=2",
                "X-a": "1, 2", "Etag": "\"e\"", "Server": "ü", "Via": "ü", "Content-Length": "12",
            ])
        #expect(response.suggestedFilename == "name.txt" && response.url == Self.url)
        #expect(!response.description.contains("b=2") && response.description.contains("999"))
    }

    @Test(
        "expect what is delivered, not what the head says of a coded body",
        arguments: [
            (BodyLength.unknown, nil, Int64(-1)), (.unknown, "7", -1), (.none, nil, -1),
            (.none, "7", 7), (.known(UInt64.max), nil, Int64.max), (.known(0), nil, 0),
        ] as [(BodyLength, String?, Int64)])
    func receivedLengths(length: BodyLength, field: String?, expected: Int64) {
        var head = ResponseHead(status: .ok)
        if let field { head.fields.append("Content-Length", field) }
        let response = HTTPURLResponse(url: Self.url, head: head, bodyLength: length)
        #expect(response.expectedContentLength == expected)
    }

    @Test("answer many threads at once alike")
    func threads() async {
        for _ in 0..<50 {
            let response = HTTPURLResponse(
                url: Self.url, head: ResponseHead(status: .ok, fields: ["Content-Type": "a/b"]),
                bodyLength: .known(1))
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        response.mimeType == "a/b" && response.allHeaderFields.count == 2
                    }
                }
                for await isRight in group { #expect(isRight) }
            }
        }
    }

    @Test("survive archives")
    func archives() throws {
        let plain = URLResponse(
            url: Self.url, mimeType: "a/b", expectedContentLength: 5, textEncodingName: "c")
        let made = HTTPURLResponse(
            url: Self.url,
            head: ResponseHead(
                status: StatusCode(404), fields: ["Content-Type": "A/b; charset=X", "X-y": "z"]),
            bodyLength: .known(9))
        let data = try NSKeyedArchiver.archivedData(
            withRootObject: [plain, made] as NSArray, requiringSecureCoding: true)
        let back = try #require(
            try NSKeyedUnarchiver.unarchivedObject(
                ofClasses: [NSArray.self, URLResponse.self, HTTPURLResponse.self], from: data)
                as? [URLResponse])
        #expect(back == [plain, made])
        #expect(back[0].suggestedFilename == "name.txt" && back[0].mimeType == "a/b")
        let http = try #require(back[1] as? HTTPURLResponse)
        #expect(http.statusCode == 404 && http.expectedContentLength == 9)
        #expect(http.mimeType == "a/b" && http.textEncodingName == "x")
        #expect(
            http.allHeaderFields as? [String: String] == made.allHeaderFields as? [String: String])
    }

    @Test("survive archives also without a URL")
    func nowhere() throws {
        for response in [URLResponse(), HTTPURLResponse()] {
            let data = try NSKeyedArchiver.archivedData(
                withRootObject: response, requiringSecureCoding: true)
            let back = try #require(
                try NSKeyedUnarchiver.unarchivedObject(
                    ofClasses: [URLResponse.self, HTTPURLResponse.self], from: data)
                    as? URLResponse)
            #expect(back == response && back.url == nil && type(of: back) == type(of: response))
        }
        let empty = NSKeyedArchiver(requiringSecureCoding: true)
        #expect(URLResponse(coder: try NSKeyedUnarchiver(forReadingFrom: empty.encodedData)) == nil)
    }

    @Test("take no path for a name from an archive", arguments: [("", "Unknown"), ("x/y", "y")])
    func archivedNames(kept: String, name: String) throws {
        let archiver = NSKeyedArchiver(requiringSecureCoding: false)
        archiver.outputFormat = .xml
        archiver.encode(
            URLResponse(
                url: URL(string: "a://b")!, mimeType: nil, expectedContentLength: 0,
                textEncodingName: nil), forKey: NSKeyedArchiveRootObjectKey)
        let text = String(decoding: archiver.encodedData, as: UTF8.self)
        let data = Data(text.replacingOccurrences(of: "Unknown", with: kept).utf8)
        let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: URLResponse.self, from: data)
        #expect(back?.suggestedFilename == name)
    }

    @Test(
        "name status codes",
        arguments: [
            (200, "OK"), (404, "Not Found"), (418, "Client Error"), (299, "Success"),
            (999, "Server Error"),
            (-1, "Server Error"), (Int.max, "Server Error"), (413, "Payload Too Large"),
            (199, "Informational"), (399, "Redirection"),
        ])
    func names(code: Int, name: String) {
        #expect(HTTPURLResponse.localizedString(forStatusCode: code) == name)
    }
}
