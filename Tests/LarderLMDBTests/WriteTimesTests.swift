import Testing

@testable import LarderLMDB

@Suite("How long write transactions took")
struct WriteTimesTests {
    @Test("is told by quantiles that are at most a fifth too high, and by the longest time")
    func quantiles() {
        let times = WriteTimes()
        for milliseconds in 1...1000 {
            times.note(transaction: .milliseconds(milliseconds), commit: nil)
        }
        let figures = times.take()
        #expect(figures.transactions.count == 1000)
        #expect(figures.transactions.longest == .milliseconds(1000))
        #expect(figures.transactions.sum == .milliseconds(500_500))
        for (share, exact) in [(0.5, 500), (0.99, 990), (1, 1000), (0, 1)] {
            let found = figures.transactions.quantile(share)
            #expect(found >= .milliseconds(exact) && found <= .microseconds(exact * 1250))
        }
        #expect(figures.commits.count == 0)
        #expect(figures.commits.quantile(0.5) == .zero)
    }

    @Test("begins anew with each look")
    func taking() {
        let times = WriteTimes()
        times.note(transaction: .milliseconds(2), commit: .milliseconds(1))
        times.noteWithoutRoom()
        let figures = times.take()
        #expect(figures.withoutRoom == 1)
        #expect(figures.commits.longest == .milliseconds(1))
        #expect(times.take().transactions.count == 0)
    }

    @Test(
        "takes any duration",
        arguments: [.zero, .nanoseconds(1), .seconds(Int64.max)] as [Duration])
    func extremes(duration: Duration) {
        let times = WriteTimes()
        times.note(transaction: duration, commit: duration)
        #expect(times.take().transactions.quantile(1) >= .zero)
    }
}
