import Foundation
import Testing

@testable import LarderProcess
@testable import URLLoading

@Suite(
    "Client certificates on a stream task (§6, §13)", .timeLimit(.minutes(5)),
    .enabled(if: SecureOrigin.isAvailable, "nginx and openssl are needed as the origin"))
struct StreamsIdentityTests {
    /// Asks over a stream what a page is asked for by.
    ///
    /// - Returns: what came first.
    private func ask(_ task: URLSessionStreamTask) async throws -> String {
        task.resume()
        task.startSecureConnection()
        try await task.write(Data("GET / HTTP/1.0\r\n\r\n".utf8), timeout: 0)
        let (data, _) = try await task.readData(ofMinLength: 5, maxLength: 5, timeout: 0)
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    @Test(
        "what is required and missing, or refused, has its error",
        arguments: ["-tls1_2", "-tls1_3"])
    func required(_ version: String) async throws {
        try await Scratch.with { scratch in
            let demanding = try await DemandingOrigin.start(version, in: scratch.url)
            for (identity, code) in demanding.cases {
                let delegate = TaskChallengeDelegate { challenge in
                    if let trust = challenge.protectionSpace.serverTrust {
                        return (.useCredential, URLCredential(trust: trust))
                    }
                    guard let identity else { return (.performDefaultHandling, nil) }
                    return (
                        .useCredential,
                        URLCredential(
                            identity: identity, certificates: nil, persistence: .forSession)
                    )
                }
                let session = URLSession.alone(delegate)
                let task = session.streamTask(
                    withHostName: "localhost", port: demanding.origin.port)
                do {
                    #expect(try await self.ask(task) == "HTTP/")
                    #expect(code == nil)
                } catch {
                    #expect((error as? URLError)?.code == code)
                }
                #expect(delegate.challenges.value.count == 2)
                session.invalidateAndCancel()
            }
        }
    }
}
