/// Whether upstreams measure each fetch that they begin.
enum UpstreamMeasuring {
    static let isDone = false
}
