import Foundation
import NIOCore
import NIOPosix

/// A small HTTP server on a free port of loopback, with what the chapters ask for.
actor TourOrigin {
    /// A request as it came.
    struct Seen: Sendable {
        var method: String
        var path: String
        var fields: [(name: String, value: String)]
        /// How many bytes of content came with it.
        var contentLength = 0

        func field(_ name: String) -> String? {
            self.fields.first { $0.name.lowercased() == name }?.value
        }
    }

    static let largeSize = 8 << 20
    static let large = Data((0..<largeSize).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) })

    private(set) var requests: [Seen] = []
    private(set) var connectionCount = 0
    private let channel: any Channel
    nonisolated let port: Int

    private init(_ channel: any Channel) {
        self.channel = channel
        self.port = channel.localAddress?.port ?? 0
    }

    static func start() async throws -> TourOrigin {
        let (steps, step) = AsyncStream<Step>.makeStream()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                step.yield(.connection)
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        TourConnection { step.yield(.request($0, $1)) })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let origin = TourOrigin(channel)
        // Ends with the stream, which ends with the process.
        Task { for await step in steps { await origin.take(step) } }
        return origin
    }

    func stop() async {
        // A server that is closed already is what is wanted.
        try? await self.channel.close().get()
    }

    private enum Step: Sendable {
        case connection
        case request(Seen, @Sendable (TourAnswer) -> Void)
    }

    private func take(_ step: Step) {
        switch step {
        case .connection: self.connectionCount += 1
        case .request(let request, let reply):
            self.requests.append(request)
            reply(self.answer(request))
        }
    }

    private func answer(_ request: Seen) -> TourAnswer {
        let path = request.path.prefix { $0 != "?" }
        switch path {
        case "/large": return self.largeAnswer(request)
        case "/upload": return TourAnswer(text: "\(request.contentLength) bytes")
        case "/cookie":
            return TourAnswer(
                fields: ["Set-Cookie: visit=1; Path=/; Max-Age=600"], text: "a cookie")
        case "/page":
            return TourAnswer(
                fields: ["Cache-Control: max-age=600", "Content-Type: text/plain"],
                text: String(repeating: "A page to keep. ", count: 64))
        case "/private":
            guard request.field("authorization") == "Basic YWRhOmVuZ2luZQ==" else {
                return TourAnswer(
                    status: "401 Unauthorized",
                    fields: ["WWW-Authenticate: Basic realm=\"the tour\""], text: "who are you?")
            }
            return TourAnswer(text: "welcome")
        case "/moved":
            return TourAnswer(status: "302 Found", fields: ["Location: /page"], text: "over there")
        case "/brief": return TourAnswer(text: "brief")
        default: return TourAnswer(status: "404 Not Found", text: "nothing is here")
        }
    }

    /// The large body, or the part of it that a range asks for; without one and `slowly`, it stalls
    /// in the midst.
    private func largeAnswer(_ request: Seen) -> TourAnswer {
        var answer = TourAnswer(
            fields: ["ETag: \"large-1\"", "Accept-Ranges: bytes"], content: Self.large)
        if let range = request.field("range"),
            let from = Int(range.dropFirst("bytes=".count).prefix { $0 != "-" }),
            from < Self.largeSize
        {
            answer.status = "206 Partial Content"
            answer.fields.append(
                "Content-Range: bytes \(from)-\(Self.largeSize - 1)/\(Self.largeSize)")
            answer.content = Self.large.dropFirst(from)
        } else if request.path.hasSuffix("slowly") {
            answer.stallsAfter = 2 << 20
        }
        return answer
    }
}

/// What the origin answers with.
struct TourAnswer: Sendable {
    var status = "200 OK"
    var fields: [String] = []
    var content: Data
    /// After so many bytes of the content nothing more is sent; nil: all of it is.
    var stallsAfter: Int?

    init(status: String = "200 OK", fields: [String] = [], content: Data) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    init(status: String = "200 OK", fields: [String] = [], text: String) {
        self.init(status: status, fields: fields, content: Data(text.utf8))
    }

    var head: String {
        (["HTTP/1.1 \(self.status)"] + self.fields + ["Content-Length: \(self.content.count)"])
            .joined(separator: "\r\n") + "\r\n\r\n"
    }
}
