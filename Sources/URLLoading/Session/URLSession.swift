public import Foundation

/// Makes tasks that load URLs, by one configuration.
open class URLSession: NSObject, @unchecked Sendable {
    private static let common = URLSession(configuration: .default)

    open class var shared: URLSession { self.common }

    /// A copy of what it was made with.
    open var configuration: URLSessionConfiguration {
        self.settings.copy() as? URLSessionConfiguration ?? .default
    }
    open private(set) var delegate: (any URLSessionDelegate)?
    open private(set) var delegateQueue: OperationQueue
    open var sessionDescription: String?

    let settings: URLSessionConfiguration

    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        self.settings = configuration.copy() as? URLSessionConfiguration ?? .default
        self.delegate = delegate
        self.delegateQueue = queue ?? OperationQueue()
        super.init()
    }

    public convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }
}
