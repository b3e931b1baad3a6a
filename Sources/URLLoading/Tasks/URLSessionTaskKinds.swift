/// A task that delivers the body of the response.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {
    public override init() { super.init() }

    override init(_ order: borrowing TaskOrder, of session: URLSession) {
        super.init(order, of: session)
    }
}
