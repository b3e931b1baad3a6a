import Foundation
import Synchronization
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite("data: URLs (RFC 2397, §10)")
struct DataLoadTests {
    @Test(
        "are taken apart",
        arguments: [
            ("data:,123", "123", "text/plain", nil), ("data:,", "", "text/plain", nil),
            ("DATA:Text/HTML,<b>", "<b>", "text/html", nil),
            ("data:;charset=utf-8;base64,w7w=", "ü", "text/plain", "utf-8"),
            ("data:text/plain;charset=utf-8,%c3%Bc", "ü", "text/plain", "utf-8"),
            (
                "data:application/json;charset=iso-8859-1;key=v,,123", ",123", "application/json",
                "iso-8859-1"
            ),
            ("data:;charset=utf-8;charset=utf-16;image/png,abc", "abc", "text/plain", "utf-8"),
            ("data:a/b;key=value;charset=macroman,bla", "bla", "a/b", "macroman"),
            ("data:a/b;charset=\"x y\",z", "z", "a/b", "x y"),
            ("data:nonsense,a", "a", "text/plain", nil), ("data:a/b/c,a", "a", "text/plain", nil),
            ("data:/b,a", "a", "text/plain", nil), ("data:charset=utf-8,a", "a", "text/plain", nil),
            ("data:a/b; BASE64 ,YWI", "ab", "a/b", nil), ("data:a/b;base64,YQ==", "a", "a/b", nil),
            ("data:;base64,Y%57%49%3D", "ab", "text/plain", nil),
            ("data:;base64,Y W\tI=", "ab", "text/plain", nil),
            ("data:;base64,", "", "text/plain", nil),
            ("data:;base64;x=y,YQ==", "YQ==", "text/plain", nil),
            ("data:,a%zz%4", "a%zz%4", "text/plain", nil), ("data:,a#b", "a", "text/plain", nil),
            ("data:,a?b", "a?b", "text/plain", nil),
        ] as [(String, String, String, String?)])
    func good(url: String, text: String, type: String, charset: String?) throws {
        let contents = try #require(DataURL(url))
        #expect(String(decoding: contents.data, as: UTF8.self) == text)
        #expect(contents.mediaType == type && contents.charset == charset)
    }

    @Test(
        "are bad without a comma, with escapes before it, with Base64 that is none",
        arguments: [
            "data:", "data:abc", "data://blah", "data:%2c123", "http://a,b", "",
            "data:application_json;charset=iso-8859-%31;key=value,123,",
            "data:appli/cation/json%3bcharset=ISO-8859-1;key=value,,123,", "data:;base64,YQ=",
            "data:;base64,Y", "data:;base64,Y=Q=", "data:;base64,YQ===", "data:;base64,Y*Q=",
            "data:;base64,ü", "data:;base64,%ff%ff%ff%ff",
        ])
    func bad(url: String) {
        #expect(DataURL(url) == nil)
    }

    /// `URL(string:)` writes escapes in their place.
    @Test(
        "have spaces and quotation marks before the comma",
        arguments: [
            ("data:text/x; charset=utf-8,a", "a", "text/x", "utf-8"),
            ("data: ,a", "a", "text/plain", nil), ("data:text/x ,a", "a", "text/x", nil),
            ("data:text/x; charset=utf-8; base64,YQ==", "a", "text/x", "utf-8"),
            ("data:text/x;base64 ,YQ==", "a", "text/x", nil),
            ("data:text/x;charset=\"y z\",a", "a", "text/x", "y z"),
            ("data:text/x;a%20b,c", "c", "text/x", nil),
            ("data:%20,%2520", "%20", "text/plain", nil),
        ] as [(String, String, String, String?)])
    func spaces(url: String, text: String, type: String, charset: String?) throws {
        let written = try #require(URL(string: url)).absoluteString
        let contents = try #require(DataURL(written))
        #expect(String(decoding: contents.data, as: UTF8.self) == text)
        #expect(contents.mediaType == type && contents.charset == charset)
    }

    @Test("are their own response, in one piece")
    func loading() async throws {
        let recorder = LoadRecorder()
        _ = DataLoader().load(try .of("data:text/x;charset=y,abc"), observer: recorder)
        let (pieces, failure) = try await recorder.body()
        #expect(pieces == [Data("abc".utf8)] && failure == nil)
        #expect(recorder.response?.expectedContentLength == 3)
        #expect(recorder.response?.mimeType == "text/x")
        #expect(recorder.response?.textEncodingName == "y")
        #expect(recorder.said.value == ["answered", "measured"])
        #expect(recorder.transaction.withLock { $0?.bodyBytes } == 3)
    }

    @Test("fail with a bad URL where they are bad, and are over")
    func failing() throws {
        let recorder = LoadRecorder()
        DataLoader().load(try .of("data:abc"), observer: recorder).cancel()
        #expect(recorder.code == .badURL && recorder.said.value == ["failed", "measured"])
    }
}
