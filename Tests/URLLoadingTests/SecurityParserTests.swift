import Foundation
import LarderHTTP
import SeededNumbers
import Testing

@testable import URLLoading

@Suite("What a program or a disk may hand in (§9, §8, §3.5)", .timeLimit(.minutes(5)))
struct SecurityParserTests {
    @Test("nonsense in a cookie's properties makes no cookie or a harmless one")
    func cookieProperties() throws {
        let values: [Any] = [
            Double.nan, Double.infinity, -Double.infinity, 1e300, -1e300, Int.max, Int.min,
            UInt64.max, NSNumber(value: Double.nan), NSNumber(value: 1e300),
            NSNumber(value: UInt64.max), "", "\r\n", "a;b", "99999999999999999999",
            "-99999999999999999999", "Tue, 99 Foo 99999 99:99:99", Date.distantFuture,
            Date.distantPast, Date(timeIntervalSinceReferenceDate: .infinity),
            Date(timeIntervalSinceReferenceDate: .nan), Date(timeIntervalSinceReferenceDate: 1e300),
            [NSNumber(value: Double.nan), NSNumber(value: 1e300)], [1, 2], [:] as [String: String],
            NSNull(), Data([1]), URL(string: "http://[::1]/") as Any, true,
        ]
        let keys: [HTTPCookiePropertyKey] = [
            .name, .value, .domain, .path, .originURL, .version, .expires, .maximumAge, .discard,
            .secure, .httpOnly, .comment, .commentURL, .port, .sameSitePolicy, .created,
        ]
        let url = try #require(URL(string: "http://example.test/"))
        let storage = URLSessionConfiguration.ephemeral.httpCookieStorage
        for key in keys {
            for value in values {
                var properties: [HTTPCookiePropertyKey: Any] = [
                    .name: "n", .value: "v", .domain: "example.test", .path: "/",
                ]
                properties[key] = value
                guard let cookie = HTTPCookie(properties: properties) else { continue }
                _ = (cookie.description, cookie.hash, cookie.properties, cookie.portList)
                #expect(cookie == HTTPCookie(properties: cookie.properties ?? [:]) || key == .port)
                storage?.setCookie(cookie)
                storage?.setCookies([cookie], for: url, mainDocumentURL: nil)
                let line = HTTPCookie.requestHeaderFields(with: [cookie])["Cookie"] ?? ""
                #expect(!line.utf8.contains { $0 < 0x20 && $0 != 9 })
                _ = storage?.cookies(for: url)
            }
        }
    }

    @Test("random Set-Cookie fields never trap, and what is read is written harmlessly")
    func cookieFields() throws {
        var numbers = SplitMix64(seed: 7)
        let pieces = [
            "a=b", ";", ",", " ", "\t", "\r\n", "\0", "Expires=", "Max-Age=", "-1", "9e99", "\"",
            "=", "Domain=", ".", "com", "example.test", "Path=", "/", "Secure", "HttpOnly",
            "SameSite=", "__Host-", "\u{e9}", "Thu, 01 Jan 1970 00:00:00 GMT",
            "99999999999999999999",
            "Port=\"1,99999999999999999999\"", "Version=1", "CommentURL=\u{0}", "x",
        ]
        let url = try #require(URL(string: "https://www.example.test/a/b"))
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0..<12, using: &numbers))
                .map { _ in pieces.randomElement(using: &numbers) ?? "" }.joined()
            let cookies = HTTPCookie.cookies(
                withResponseHeaderFields: ["Set-Cookie": text], for: url)
            for cookie in cookies {
                let pair = "\(cookie.name)=\(cookie.value)"
                #expect(!pair.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 || $0 == 59 })
            }
        }
    }

    @Test("resume data with any bit flipped, or any part cut out, is refused")
    func resumeData() throws {
        let part = DownloadPart(path: "/tmp/CFNetworkDownload_abcdef.tmp", length: 5, checksum: 1)
        let url = try #require(URL(string: "http://example.test/a"))
        let whole = ResumeData(
            url: url, fields: [.init(name: "X-A", value: "b")],
            validators: .init(entityTag: "\"a\"", lastModified: nil), total: 10, part: part
        ).encoded()
        #expect(ResumeData(decoding: whole) != nil)
        for index in whole.indices {
            for bit in 0..<8 {
                var bytes = whole
                bytes[index] ^= 1 << UInt8(bit)
                #expect(ResumeData(decoding: bytes) == nil)
            }
            #expect(ResumeData(decoding: whole[..<index]) == nil)
            #expect(ResumeData(decoding: whole[(index + 1)...]) == nil)
        }
        #expect(ResumeData(decoding: whole + Data([0])) == nil)
        // Slices do not begin at 0.
        let slice = (Data([9]) + whole)[1...]
        #expect(ResumeData(decoding: slice) != nil)
    }

    @Test("a partial file that is none of ours is not touched", arguments: Trap.allCases)
    func hostileParts(_ trap: Trap) async throws {
        try await Scratch.with { scratch in
            let name = "\(DownloadFile.prefix)abcdef\(DownloadFile.suffix)"
            let target = try scratch.file("victim", Array("victim".utf8))
            let place = scratch.url.appendingPathComponent(name)
            try trap.set(at: place.path, target: target.path)
            let part = DownloadPart(
                path: trap == .dots ? "\(scratch.url.path)/x/../\(name)" : place.path, length: 3,
                checksum: 0)
            #expect(DownloadFile.open(part) == nil)
            #expect(try Data(contentsOf: target) == Data("victim".utf8))
        }
    }

    enum Trap: String, CaseIterable, Sendable {
        case symbolicLink, hardLink, fifo, directory, device, open, dots, absent

        func set(at path: String, target: String) throws {
            let files = FileManager.default
            switch self {
            case .symbolicLink, .device:
                try files.createSymbolicLink(
                    atPath: path, withDestinationPath: self == .device ? "/dev/zero" : target)
            case .hardLink: try files.linkItem(atPath: target, toPath: path)
            case .fifo: #expect(unsafe mkfifo(path, 0o600) == 0)
            case .directory:
                try files.createDirectory(atPath: path, withIntermediateDirectories: false)
            case .open, .dots:
                try Data("victim".utf8).write(to: URL(fileURLWithPath: path))
                try files.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
            case .absent: break
            }
        }
    }

    @Test("what a cache notes is read as what it may be, and nothing else (§8)")
    func cacheNotes() throws {
        let url = try #require(URL(string: "http://a.test/"))
        let response = try #require(
            HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: nil, headerFields: ["A": "b"]))
        let note = CacheNote(
            CachedURLResponse(
                response: response, data: Data(), userInfo: ["k": ["x": 1]],
                storagePolicy: .allowed)
        ).encoded(withFields: true)
        #expect(CacheNote(note)?.response() != nil)
        var numbers = SplitMix64(seed: 3)
        for index in note.indices {
            var bytes = note
            bytes[index] = UInt8.random(in: 0...255, using: &numbers)
            _ = CacheNote(bytes)?.response()
            _ = CacheNote(note[..<index])?.response()
        }
        let archive = try NSKeyedArchiver.archivedData(
            withRootObject: NSDictionary(dictionary: ["url": "x"]), requiringSecureCoding: true)
        #expect(CacheNote(archive)?.response() == nil)
        // Other forms of property lists are none of ours, and their readers are deep.
        let deep = String(repeating: "(", count: 200_000)
        #expect(CacheNote(Data(deep.utf8)) == nil)
        let xml =
            "<?xml version=\"1.0\"?><plist>" + String(repeating: "<array>", count: 200_000)
        #expect(CacheNote(Data(xml.utf8)) == nil)
        #expect(CacheNote(Data(Self.deepBinary(200_000))) == nil)
        #expect(CacheNote(Data(Self.loopingBinary)) == nil)
        #expect(CacheNote(Data("<plist><dict></dict></plist>".utf8)) == nil)
    }

    @Test(
        "a note with a set, a reference, or a key that is no text is none (§8)",
        arguments: [
            // {"k": true}, and the same with another object in the place of the value or the key.
            ([0x51, 0x6B], [0x09], true), ([0x51, 0x6B], [0xC1, 0x01], false),
            ([0x51, 0x6B], [0x80, 0x01], false), ([0x51, 0x6B], [0x00], false),
            ([0x10, 0x01], [0x09], false), ([0xA0], [0x09], false), ([0x80, 0x01], [0x09], false),
        ] as [([UInt8], [UInt8], Bool)])
    func plainNotes(_ key: [UInt8], _ value: [UInt8], _ isNote: Bool) {
        let header = Array("bplist00".utf8)
        let objects: [[UInt8]] = [[0xD1, 0x01, 0x02], key, value]
        var (bytes, offsets) = (header, [UInt8]())
        for object in objects {
            offsets.append(UInt8(bytes.count))
            bytes += object
        }
        let table = UInt8(bytes.count)
        bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
        for number in [UInt8(objects.count), 0, table] {
            bytes += [0, 0, 0, 0, 0, 0, 0, number]
        }
        #expect((CacheNote(Data(bytes)) != nil) == isNote)
        for length in bytes.indices { #expect(PlainPropertyList(Data(bytes[..<length])) == nil) }
    }

    /// A binary property list of arrays in each other.
    private static func deepBinary(_ depth: Int) -> [UInt8] {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        for index in 0..<depth {
            offsets.append(bytes.count)
            if index == depth - 1 {
                bytes.append(0xA0)
            } else {
                bytes.append(0xA1)
                bytes += Self.number(index + 1, 4)
            }
        }
        let table = bytes.count
        for offset in offsets { bytes += Self.number(offset, 4) }
        bytes += [0, 0, 0, 0, 0, 0, 4, 4]
        return bytes + Self.number(depth, 8) + Self.number(0, 8) + Self.number(table, 8)
    }

    /// An array that holds itself.
    private static var loopingBinary: [UInt8] {
        Array("bplist00".utf8) + [0xA1, 0, 8] + [0, 0, 0, 0, 0, 0, 1, 1] + Self.number(1, 8)
            + Self.number(0, 8) + Self.number(10, 8)
    }

    private static func number(_ number: Int, _ width: Int) -> [UInt8] {
        (0..<width).reversed().map { UInt8(truncatingIfNeeded: number >> ($0 &* 8)) }
    }

    @Test("random data: URLs are read or refused")
    func dataURLs() {
        var numbers = SplitMix64(seed: 11)
        let pieces = [
            "data:", ",", ";", "base64", "=", "%", "%4", "%41", "%zz", "text/plain", "charset=",
            "\"", "\\", "#", "?", "/", "AAAA", "A", "==", " ", "\t", "\u{e9}", "%00", "%0d%0a",
        ]
        for _ in 0..<20_000 {
            let text =
                "data:"
                + (0..<Int.random(in: 0..<10, using: &numbers))
                .map { _ in pieces.randomElement(using: &numbers) ?? "" }.joined()
            guard let url = DataURL(text) else { continue }
            #expect(url.mediaType.contains("/"))
            #expect(url.data.count <= text.utf8.count)
        }
    }

    @Test("random fields of responses give harmless names, types and lengths")
    func responses() throws {
        var numbers = SplitMix64(seed: 13)
        let pieces = [
            "attachment", ";", "filename=", "filename*=", "UTF-8''", "%2F", "..", "/", "\\", "\"",
            "%00", "\0", "\u{202e}", "a.txt", "=", " ", "text/html", "charset=", ",",
            "iso-8859-1''",
            "%e9", "\u{85}", "~", ".", String(repeating: "x", count: 300),
        ]
        let url = try #require(URL(string: "http://a.test/%2e%2e%2f/"))
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0..<9, using: &numbers))
                .map { _ in pieces.randomElement(using: &numbers) ?? "" }.joined()
            let response = HTTPURLResponse(
                url: url, statusCode: 200, httpVersion: nil,
                headerFields: [
                    "Content-Disposition": text, "Content-Type": text, "Content-Length": text,
                ])
            let name = response?.suggestedFilename ?? ""
            #expect(!name.isEmpty && name != "." && name != ".." && name.utf8.count <= 255)
            #expect(
                !name.unicodeScalars.contains {
                    $0 == "/" || $0.value < 0x20 || (0x7F...0x9F).contains($0.value)
                })
            #expect((response?.expectedContentLength ?? -1) >= -1)
        }
    }

    @Test("user and password of an ftp URL are kept, whatever the case of its scheme")
    func ftp() throws {
        let url = try #require(URL(string: "FTP://u:p@host.test/f"))
        #expect(try TargetURI(loading: url).userInfo == "u:p")
        let http = try #require(URL(string: "HTTP://u:p@host.test/f"))
        #expect(try TargetURI(loading: http).userInfo == nil)
    }

    @Test("archives of nonsense make no credential and no space, and trap nowhere")
    func archives() throws {
        for kind in [
            NSURLRequest.self, URLResponse.self, HTTPURLResponse.self, URLCredential.self,
            URLProtectionSpace.self,
        ] as [any (NSObject & NSSecureCoding).Type] {
            let archiver = NSKeyedArchiver(requiringSecureCoding: true)
            archiver.encode(Int.min, forKey: "NS.statusCode")
            archiver.encode(Int.min, forKey: "NS._cachePolicy")
            archiver.encode(Int64.min, forKey: "NS.expectedContentLength")
            archiver.encode(Double.nan, forKey: "NS._timeoutInterval")
            archiver.encode(NSURL(string: "http://a.test/"), forKey: "NS.url")
            archiver.encode(NSNumber(value: -1), forKey: "NS._persistence")
            archiver.encode(-5, forKey: "NS.port")
            archiver.finishEncoding()
            let reader = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
            let read = kind.init(coder: reader)
            let isSecret = kind is URLCredential.Type || kind is URLProtectionSpace.Type
            #expect((read == nil) == isSecret)
            if let read { _ = (shown(read), read.hash) }
        }
    }
}
