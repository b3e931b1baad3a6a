import Foundation

/// Media types by file name extensions.
enum FileMediaType {
    static let unknown = "application/octet-stream"

    /// The media type of files with this extension; what the system says (`/etc/mime.types`) fills up
    /// a table of the most common.
    static func of(_ extension: String) -> String {
        let name = `extension`.lowercased()
        guard !name.isEmpty else { return self.unknown }
        return self.common[name] ?? self.system[name] ?? self.unknown
    }

    private static let common: [String: String] = [
        "aac": "audio/aac", "avi": "video/x-msvideo", "avif": "image/avif", "bmp": "image/bmp",
        "bz2": "application/x-bzip2", "css": "text/css", "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "epub": "application/epub+zip", "flac": "audio/flac", "gif": "image/gif",
        "gz": "application/gzip", "heic": "image/heic", "heif": "image/heif", "htm": "text/html",
        "html": "text/html", "ico": "image/x-icon", "ics": "text/calendar", "jpeg": "image/jpeg",
        "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json",
        "m4a": "audio/mp4", "m4v": "video/x-m4v", "md": "text/markdown", "mjs": "text/javascript",
        "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg",
        "mpg": "video/mpeg", "oga": "audio/ogg", "ogg": "audio/ogg", "ogv": "video/ogg",
        "otf": "font/otf", "pdf": "application/pdf", "plist": "application/x-plist",
        "png": "image/png", "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "rtf": "application/rtf", "svg": "image/svg+xml", "tar": "application/x-tar",
        "tif": "image/tiff", "tiff": "image/tiff", "ttf": "font/ttf", "txt": "text/plain",
        "wasm": "application/wasm", "wav": "audio/wav", "weba": "audio/webm",
        "webm": "video/webm", "webp": "image/webp", "woff": "font/woff", "woff2": "font/woff2",
        "xhtml": "application/xhtml+xml", "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "xml": "application/xml", "yaml": "application/yaml", "yml": "application/yaml",
        "zip": "application/zip", "zst": "application/zstd",
    ]

    /// The system's table, read once; empty where there is none.
    private static let system: [String: String] = {
        guard let data = FileManager.default.contents(atPath: "/etc/mime.types") else { return [:] }
        return FileMediaType.parse(String(decoding: data.prefix(1 << 20), as: UTF8.self))
    }()

    /// Lines of a media type and the extensions that mean it, `#` before what is no line.
    static func parse(_ text: String) -> [String: String] {
        var types: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
            let words = line.split { $0 == " " || $0 == "\t" }
            for name in words.dropFirst() where types[name.lowercased()] == nil {
                types[name.lowercased()] = String(words[0])
            }
        }
        return types
    }
}
