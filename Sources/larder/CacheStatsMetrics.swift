import LarderControl
import LarderDisk

/// `larder cache stats --prometheus`: the text format that Prometheus and its collectors read.
///
/// Without a proxy there are only those of the file.
enum CacheStatsMetrics {
    private typealias Metric = PrometheusMetric

    static func lines(_ report: CacheStatsReport) -> [String] {
        Metric.lines(self.metrics(report), common: [("session", report.session)])
    }

    private static func metrics(_ report: CacheStatsReport) -> [Metric] {
        let up = Metric(
            "up", .gauge, "Whether a proxy serves the session.", report.running == nil ? 0 : 1)
        return [up] + (report.running.map { Self.requests($0) } ?? []) + Self.tiers(report)
    }

    private static func requests(_ running: SessionStatistics) -> [Metric] {
        func counter(_ name: String, _ help: String, _ value: UInt64) -> Metric {
            Metric(name, .counter, help, value)
        }
        let started = UInt64(clamping: (running.startedMicroseconds ?? 0) / 1_000_000)
        return [
            Metric(
                "start_time_seconds", .gauge, "When the proxy began, by Unix time.",
                started == 0 ? [] : [([], started)]),
            counter("requests_total", "Requests that came.", running.requests),
            counter("hits_total", "Answered from the cache without asking.", running.hits),
            counter("validated_total", "Answered from the cache after asking.", running.validated),
            counter("misses_total", "Answered by origins.", running.misses),
            counter(
                "collapsed_total", "Answered by another request's fetch.", running.collapsed ?? 0),
            counter("failures_total", "Requests without an answer.", running.failures),
            counter("cancelled_total", "Left by their clients.", running.cancelled ?? 0),
            counter(
                "served_bytes_total", "Bodies received from origins, and those from the cache.",
                running.bytesServed),
            counter("saved_bytes_total", "Of these, from the cache.", running.bytesFromCache),
            counter("store_failures_total", "Failures of the disk.", running.storeFailures),
            Metric(
                "decisions_total", .counter, "How often each rule decided.",
                (running.reasons ?? [:]).sorted { $0.key < $1.key }.map {
                    ([("reason", $0.key)], $0.value)
                }),
        ]
    }

    /// Of both tiers as the proxy knows them; of the file alone where none runs, and then no counters:
    /// the proxy counts from its start, and the file from when it was made.
    private static func tiers(_ report: CacheStatsReport) -> [Metric] {
        var tiers: [(String, SessionStatistics.Tier)] = []
        if let running = report.running {
            tiers.append(("memory", running.memory))
            if let disk = running.disk { tiers.append(("disk", disk)) }
        } else if let disk = report.disk {
            tiers.append(
                (
                    "disk",
                    SessionStatistics.Tier(
                        objects: disk.objects, bytes: disk.usedBytes, capacity: disk.capacityBytes,
                        evictions: disk.evictions, hits: disk.hits)
                ))
        }
        let counted = report.running == nil ? [] : tiers
        func metric(
            _ name: String, _ kind: Metric.Kind, _ help: String,
            _ value: KeyPath<SessionStatistics.Tier, UInt64>
        ) -> Metric {
            Metric(
                name, kind, help,
                (kind == .counter ? counted : tiers).map {
                    ([("tier", $0.0)], $0.1[keyPath: value])
                })
        }
        return [
            metric("objects", .gauge, "Stored responses.", \.objects),
            metric("used_bytes", .gauge, "What they take.", \.bytes),
            metric("capacity_bytes", .gauge, "What they may take.", \.capacity),
            metric("evictions_total", .counter, "Responses that made room.", \.evictions),
            metric("tier_hits_total", .counter, "Look-ups that found something.", \.hits),
        ]
    }
}
