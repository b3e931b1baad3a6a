import Foundation
import LarderHTTP

extension RequestCookies {
    /// What a program's request says of cookies.
    ///
    /// - Parameter task: for storages whose methods are overridden.
    init(_ request: URLRequest, task: URLSessionTask?) {
        self.init(
            isHandled: request.httpShouldHandleCookies,
            mainDocumentHost: request.mainDocumentURL.map { CookieHost.name($0.host ?? "") },
            owner: task)
    }
}
