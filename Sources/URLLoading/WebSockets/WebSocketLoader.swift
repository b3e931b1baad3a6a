import LarderHTTP

/// Loads ws and wss: connects, shakes hands, and answers with a connection.
struct WebSocketLoader: Loader {
    let session: URLSession
    func load(_ order: LoadOrder, observer: any LoadObserver) -> any Load {
        order.body?.source.cancel()
        let load = WebSocketLoad(order, observer)
        load.begin(of: self.session)
        return load
    }
}

/// The connection, in the place of a response's body: it never says anything, and ends with the task.
final class WebSocketBody: BodySource {
    let load: WebSocketLoad
    /// What the server wants to speak.
    let chosen: String?

    init(_ load: WebSocketLoad, chosen: String?) {
        self.load = load
        self.chosen = chosen
    }

    func attach(wake: @escaping @Sendable () -> Void) {}
    func next() -> BodyStep { .pending }
    func cancel() { self.load.cancel() }
}
