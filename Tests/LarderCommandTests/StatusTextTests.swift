import LarderControl
import Testing

@testable import larder

@Suite("What larder status shows")
struct StatusTextTests {
    static let now: Int64 = 951_782_490_000_000

    static let busy: DaemonStatus = {
        var status = DaemonStatus(
            release: "1.2", pid: 8, startedMicroseconds: 951_782_400_000_000,
            listeners: ["127.0.0.1:3128", "unix:/run/p"], sessions: ["default", "ci"],
            configuration: "/etc/\u{1B}larder.yaml")
        var clients = DaemonStatus.Clients()
        clients.openConnections = 12
        clients.connections = 3456
        clients.connectionsRefused = 1
        clients.connectionsDelayed = 2
        clients.acceptsFailed = 3
        clients.requests = 1_234_567
        clients.bytesReceived = 1536
        clients.bytesSent = 3 << 30
        clients.openTunnels = 1
        clients.tunnels = 33
        clients.answersCut = 4
        clients.ownAnswers = ["504": 3, "403": 1200]
        status.clients = clients
        var origins = DaemonStatus.Origins()
        origins.openConnections = 1
        origins.connections = 70
        origins.openFetches = 2
        origins.fetches = 4222
        origins.lookupsDelayed = 5
        status.origins = origins
        return status
    }()

    @Test("for people: what never happened has no line")
    func page() {
        #expect(
            StatusText.lines(Self.busy, nowMicroseconds: Self.now) == [
                "proxy          larder 1.2, process 8, for 90 s, since 2000-02-29 00:00:00 UTC",
                "configuration  /etc/\\u{1b}larder.yaml",
                "listening on   127.0.0.1:3128, unix:/run/p",
                "sessions       default, ci",
                "clients        12 connections open, 3,456 in all",
                "               1 connection closed at once, their clients having enough",
                "               2 connections had to wait",
                "               3 connections not accepted, for want of descriptors or memory",
                "requests       1,234,567, received 1.5 KiB, sent 3 GiB",
                "tunnels        1 open, 33 in all",
                "own answers    403 1,200",
                "               504 3",
                "cut            4 answers before the end",
                "origins        1 connection open, 70 in all",
                "fetches        2 under way, 4,222 in all",
                "               5 waited for a name's turn to be looked up",
            ])
        var idle = DaemonStatus(
            release: "1.2", pid: 8, startedMicroseconds: .min, listeners: [], sessions: [],
            configuration: nil)
        idle.clients = DaemonStatus.Clients()
        idle.origins = DaemonStatus.Origins()
        #expect(
            StatusText.lines(idle, nowMicroseconds: .max).dropFirst(4) == [
                "clients        0 connections open, 0 in all",
                "requests       0, received 0 B, sent 0 B",
                "origins        0 connections open, 0 in all",
                "fetches        0 under way, 0 in all",
            ])
    }

    @Test("for Prometheus: each metric with its type, without a label but the status")
    func metrics() {
        let lines = PrometheusMetric.lines(StatusText.metrics(Self.busy))
        for line in [
            "# TYPE larder_client_connections_open gauge", "larder_client_connections_open 12",
            "# TYPE larder_client_connections_total counter",
            "larder_client_connections_total 3456", "larder_client_connections_refused_total 1",
            "larder_client_connections_delayed_total 2", "larder_client_accepts_failed_total 3",
            "larder_client_requests_total 1234567", "larder_client_received_bytes_total 1536",
            "larder_client_sent_bytes_total 3221225472", "larder_tunnels_open 1",
            "larder_tunnels_total 33", "larder_answers_cut_total 4",
            "larder_own_answers_total{status=\"403\"} 1200",
            "larder_own_answers_total{status=\"504\"} 3", "larder_origin_connections_open 1",
            "larder_origin_connections_total 70", "larder_fetches_open 2",
            "larder_fetches_total 4222",
            "larder_lookups_delayed_total 5",
        ] { #expect(lines.contains(line), "\(line)") }
        // One that collects both files takes no metric with two explanations.
        let named = lines.filter { $0.hasPrefix("# HELP ") }.map { $0.split(separator: " ")[2] }
        #expect(Set(named).count == named.count)
        let report = CacheStatsReport(
            session: "s", kind: "default",
            running: SessionStatistics(session: "s", kind: "default"), disk: nil)
        for line in CacheStatsMetrics.lines(report) where line.hasPrefix("# HELP ") {
            #expect(!named.contains(line.split(separator: " ")[2]), "\(line)")
        }
        // A proxy of an older release tells neither.
        let old = DaemonStatus(
            release: "1.1", pid: 8, startedMicroseconds: 0, listeners: [], sessions: [],
            configuration: nil)
        #expect(StatusText.metrics(old).isEmpty)
        #expect(StatusText.lines(old, nowMicroseconds: 0).count == 4)
    }
}
