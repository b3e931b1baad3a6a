import ArgumentParser
import LarderConfig
import LarderControl

/// The verb `larder status`.
struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what the running proxy is doing with clients and origins.",
        discussion: """
            Connections, requests, bytes and tunnels of all sessions together, as they are now and as the \
            proxy has counted them since its start, and the answers it gave of its own, by status: a 403 \
            is an access rule's or a port's, a 502 to 504 a failure. "larder cache stats" shows what the \
            cache of a session holds and has done, and "larder explain" why an answer was as it was.

            Exit status 69: no proxy runs.
            """)

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var form: FigureForm

    func run() async throws {
        guard var client = try self.options.load().runningProxy(patience: .seconds(10)) else {
            throw CommandFailure(.unavailable, "no proxy is running", remedy: CommandFailure.start)
        }
        var told: DaemonStatus?
        try client.send(.status) { reply in
            if case .status(let status) = reply { told = status }
            return true
        }
        guard let status = told, status.clients != nil, status.origins != nil else {
            throw CommandFailure(
                .unavailable, "the proxy that runs is of an older release, which does not tell",
                remedy: "restart it")
        }
        if self.form.json { return try Output.line(try JSONLine.of(status)) }
        let lines =
            self.form.prometheus
            ? PrometheusMetric.lines(StatusText.metrics(status))
            : StatusText.lines(status, nowMicroseconds: wallClockMicroseconds())
        for line in lines { try Output.line(line) }
    }
}
