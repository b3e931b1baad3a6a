import Foundation
import LarderHTTP
import Testing

@testable import URLLoading

@Suite("Metrics (§11)")
struct MetricsTests {
    private let begun = Timestamp(seconds: 1_000)

    private func metrics(
        _ change: (inout TransactionMeasurement) -> Void
    ) -> URLSessionTaskTransactionMetrics {
        var measurement = TransactionMeasurement()
        measurement.begun = Date(timeIntervalSince1970: 999)
        change(&measurement)
        return URLSessionTaskTransactionMetrics(measurement)
    }

    @Test("have a date for each phase that was, and none for one that was not or did not end")
    func dates() {
        let metrics = self.metrics {
            $0.source = .network
            var transfer = TransferMeasurement(begun: self.begun)
            transfer.connectStarted = .milliseconds(1)
            transfer.requestStarted = .milliseconds(2)
            transfer.responseStarted = .seconds(3)
            $0.transfer = transfer
        }
        #expect(metrics.fetchStartDate == Date(timeIntervalSince1970: 999))
        #expect(metrics.domainLookupStartDate == nil)
        #expect(metrics.domainLookupEndDate == nil)
        #expect(metrics.connectStartDate == Date(timeIntervalSince1970: 1000.001))
        #expect(metrics.connectEndDate == nil)
        #expect(metrics.secureConnectionStartDate == nil)
        #expect(metrics.secureConnectionEndDate == nil)
        #expect(metrics.requestStartDate == Date(timeIntervalSince1970: 1000.002))
        #expect(metrics.requestEndDate == nil)
        #expect(metrics.responseStartDate == Date(timeIntervalSince1970: 1003))
        #expect(metrics.responseEndDate == nil)
        #expect(metrics.resourceFetchType == .networkLoad)
    }

    @Test("say of the cache that nothing was looked up, connected or sent")
    func cache() {
        let metrics = self.metrics {
            $0.source = .cache
            $0.ended = Date(timeIntervalSince1970: 1001)
            $0.bodyBytes = 7
        }
        #expect(metrics.resourceFetchType == .localCache)
        #expect(metrics.connectStartDate == nil)
        #expect(metrics.networkProtocolName == nil)
        #expect(!metrics.isReusedConnection)
        #expect(metrics.requestStartDate == metrics.fetchStartDate)
        #expect(metrics.responseEndDate == Date(timeIntervalSince1970: 1001))
        #expect(metrics.countOfResponseBodyBytesReceived == 0)
        #expect(metrics.countOfResponseBodyBytesAfterDecoding == 7)
    }

    @Test("count bytes before and after coding, and name the ends of the connection")
    func numbers() {
        let metrics = self.metrics {
            $0.contentBytes = 3
            $0.bodyBytes = 100
            var transfer = TransferMeasurement(begun: self.begun)
            transfer.requestHeadBytes = 10
            transfer.requestBodyBytes = 4
            transfer.responseHeadBytes = .max
            transfer.responseBodyBytes = 30
            transfer.protocolName = "h2"
            transfer.isReusedConnection = true
            transfer.remoteAddress = "192.0.2.1"
            transfer.remotePort = 443
            transfer.tlsVersion = 0x0304
            transfer.tlsCipherSuite = 0x1301
            $0.transfer = transfer
        }
        #expect(metrics.countOfRequestHeaderBytesSent == 10)
        #expect(metrics.countOfRequestBodyBytesSent == 4)
        #expect(metrics.countOfRequestBodyBytesBeforeEncoding == 3)
        #expect(metrics.countOfResponseHeaderBytesReceived == .max)
        #expect(metrics.countOfResponseBodyBytesReceived == 30)
        #expect(metrics.countOfResponseBodyBytesAfterDecoding == 100)
        #expect(metrics.networkProtocolName == "h2")
        #expect(metrics.remotePort == "443")
        #expect(metrics.localPort == nil)
        #expect(metrics.negotiatedTLSProtocolVersion == .TLSv13)
        #expect(metrics.negotiatedTLSCipherSuite == .AES_128_GCM_SHA256)
        #expect(metrics.isReusedConnection)
    }

    @Test("of a task span its life, whatever the clock did")
    func interval() {
        let (early, late) = (Date(timeIntervalSince1970: 1), Date(timeIntervalSince1970: 5))
        let metrics = URLSessionTaskMetrics(
            [TransactionMeasurement(), TransactionMeasurement()], created: early, ended: late,
            redirects: 1)
        #expect(metrics.taskInterval.duration == 4)
        #expect(metrics.transactionMetrics.count == 2)
        #expect(metrics.redirectCount == 1)
        let back = URLSessionTaskMetrics([], created: late, ended: early, redirects: 0)
        #expect(back.taskInterval.duration == 0)
    }
}
