import LarderControl

/// What `larder status` shows.
enum StatusText {
    /// The page for people.
    static func lines(_ status: DaemonStatus, nowMicroseconds now: Int64) -> [String] {
        let process = FactPage.process(
            status.pid, started: status.startedMicroseconds, nowMicroseconds: now)
        var facts: [FactPage.Fact] = [
            ("proxy", "larder \(status.release), \(process)"),
            ("configuration", status.configuration ?? "defaults"),
            ("listening on", status.listeners.joined(separator: ", ")),
            ("sessions", status.sessions.joined(separator: ", ")),
        ]
        if let clients = status.clients { facts += Self.facts(clients) }
        if let origins = status.origins { facts += Self.facts(origins) }
        return FactPage.lines(facts)
    }

    private static func facts(_ clients: DaemonStatus.Clients) -> [FactPage.Fact] {
        var facts: [FactPage.Fact] = [
            ("clients", Self.connections(clients.openConnections, of: clients.connections))
        ]
        let turnedAway: [(UInt64, String)] = [
            (clients.connectionsRefused, "closed at once, their clients having enough"),
            (clients.connectionsDelayed, "had to wait"),
            (clients.acceptsFailed, "not accepted, for want of descriptors or memory"),
        ]
        for (count, what) in turnedAway where count > 0 {
            facts.append(("", "\(Human.count(count, "connection")) \(what)"))
        }
        facts.append(
            (
                "requests",
                "\(Human.count(clients.requests)), received \(Human.size(clients.bytesReceived)), "
                    + "sent \(Human.size(clients.bytesSent))"
            ))
        if clients.tunnels > 0 {
            facts.append(
                (
                    "tunnels",
                    "\(Human.count(clients.openTunnels)) open, \(Human.count(clients.tunnels)) in all"
                ))
        }
        let answers = clients.ownAnswers.sorted { $0.key < $1.key }
        for (index, answer) in answers.enumerated() {
            facts.append(
                (index == 0 ? "own answers" : "", "\(answer.key) \(Human.count(answer.value))"))
        }
        if clients.answersCut > 0 {
            facts.append(("cut", "\(Human.count(clients.answersCut, "answer")) before the end"))
        }
        return facts
    }

    private static func connections(_ open: UInt64, of all: UInt64) -> String {
        "\(Human.count(open, "connection")) open, \(Human.count(all)) in all"
    }

    private static func facts(_ origins: DaemonStatus.Origins) -> [FactPage.Fact] {
        var facts: [FactPage.Fact] = [
            ("origins", Self.connections(origins.openConnections, of: origins.connections)),
            (
                "fetches",
                "\(Human.count(origins.openFetches)) under way, \(Human.count(origins.fetches)) in all"
            ),
        ]
        if origins.lookupsDelayed > 0 {
            facts.append(
                (
                    "",
                    "\(Human.count(origins.lookupsDelayed)) waited for a name's turn to be looked up"
                ))
        }
        return facts
    }

    // MARK: Prometheus

    /// The same as numbers: of the whole proxy, so without a session's label.
    static func metrics(_ status: DaemonStatus) -> [PrometheusMetric] {
        (status.clients.map(Self.metrics) ?? []) + (status.origins.map(Self.metrics) ?? [])
    }

    private static func metrics(_ clients: DaemonStatus.Clients) -> [PrometheusMetric] {
        [
            .init("client_connections_open", .gauge, "Open ones.", clients.openConnections),
            .init("client_connections_total", .counter, "Accepted.", clients.connections),
            .init(
                "client_connections_refused_total", .counter,
                "Closed at once, as their clients had as many as they may.",
                clients.connectionsRefused),
            .init(
                "client_connections_delayed_total", .counter,
                "Had to wait, as there were as many as there may be.", clients.connectionsDelayed),
            .init(
                "client_accepts_failed_total", .counter, "For want of descriptors or memory.",
                clients.acceptsFailed),
            .init(
                "client_requests_total", .counter,
                "Requests that were read, tunnels and refused ones included.", clients.requests),
            .init(
                "client_received_bytes_total", .counter, "From clients, tunnels included.",
                clients.bytesReceived),
            .init(
                "client_sent_bytes_total", .counter, "To clients, tunnels included.",
                clients.bytesSent),
            .init("tunnels_open", .gauge, "Open ones.", clients.openTunnels),
            .init("tunnels_total", .counter, "Begun.", clients.tunnels),
            .init(
                "answers_cut_total", .counter, "Answers that did not reach their end.",
                clients.answersCut),
            .init(
                "own_answers_total", .counter, "Answers that the proxy gave of its own, by status.",
                clients.ownAnswers.sorted { $0.key < $1.key }.map {
                    ([("status", $0.key)], $0.value)
                }),
        ]
    }

    private static func metrics(_ origins: DaemonStatus.Origins) -> [PrometheusMetric] {
        [
            .init(
                "origin_connections_open", .gauge, "Open ones, idle ones included; no tunnels.",
                origins.openConnections),
            .init("origin_connections_total", .counter, "Made.", origins.connections),
            .init(
                "fetches_open", .gauge, "Requests to origins under way, waiting ones included.",
                origins.openFetches),
            .init("fetches_total", .counter, "Begun.", origins.fetches),
            .init(
                "lookups_delayed_total", .counter, "Had to wait until a name could be looked up.",
                origins.lookupsDelayed),
        ]
    }
}
