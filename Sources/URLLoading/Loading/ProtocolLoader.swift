import Dispatch
import Foundation

/// Loads by a class of the program's (`URLProtocol`, §10).
struct ProtocolLoader: Loader {
    private let kind: URLProtocol.Type
    /// Where responses are looked for and stored; nil: nowhere.
    private let cache: URLCache?
    /// The session's, for requests that leave it to that.
    private let policy: NSURLRequest.CachePolicy
    /// How long a cache of the program's is waited for.
    private let patience: DispatchTimeInterval
    /// What the session adds to requests (`httpAdditionalHeaders`).
    private let additional: [String: String]

    /// The class, for tests.
    var name: String { "\(self.kind)" }

    /// Who of the program's classes loads a request; nil: none of them.
    ///
    /// A configuration's classes are asked in their order, then the registered ones, newest first; the
    /// first that says yes has it. Asks on the caller's thread: no lock may be held.
    ///
    /// - Parameter additional: fields that the session adds; the classes see them, as they may decide
    ///   by them.
    static func loader(
        for request: URLRequest, task: URLSessionTask, classes: [AnyClass]?,
        additional: @autoclosure () -> [String: String] = [:],
        cache: @autoclosure () -> URLCache? = nil,
        policy: @autoclosure () -> NSURLRequest.CachePolicy = .useProtocolCachePolicy,
        patience: DispatchTimeInterval = OverdueAnswers.patience
    ) -> (any Loader)? {
        let registered = RegisteredProtocols.all
        // As it nearly always is; to put two arrays together that are empty costs more than to look.
        if registered.isEmpty, classes?.isEmpty != false { return nil }
        let all = (classes ?? []).compactMap { $0 as? URLProtocol.Type } + registered
        guard !all.isEmpty else { return nil }
        let additional = additional()
        let kind = AskedProtocol.$request.withValue(request.completed(with: additional)) {
            all.first { $0.canInit(with: task) }
        }
        return kind.map {
            ProtocolLoader(
                kind: $0, cache: cache(), policy: policy(), patience: patience,
                additional: additional)
        }
    }

    func load(_ order: LoadOrder, observer: any LoadObserver) -> any Load {
        var order = order
        order.request = self.kind.canonicalRequest(
            for: order.request.completed(with: self.additional))
        let cache = order.usesCache ? self.cache : nil
        let load = ProtocolLoad(self.kind, order, cache: cache, observer)
        load.begin(under: self.policy, patience: self.patience)
        return load
    }
}

extension URLRequest {
    /// With the fields of its session that it does not have itself.
    fileprivate func completed(with additional: [String: String]) -> URLRequest {
        var request = self
        for (name, value) in additional where request.value(forHTTPHeaderField: name) == nil {
            request.setValue(value, forHTTPHeaderField: name)
        }
        return request
    }
}
