import Foundation

extension URLRequest {
    private enum Key {
        static let url = "NS.url"
        static let mainDocumentURL = "NS.mainDocumentURL"
        static let method = "NS.httpMethod"
        static let fields = "NS._allHTTPHeaderFields"
        static let body = "NS.httpBody"
        static let cachePolicy = "NS._cachePolicy"
        static let timeout = "NS._timeoutInterval"
        static let isTimeoutSet = "Larder.isTimeoutSet"
        static let serviceType = "NS._networkServiceType"
        static let attribution = "Larder.attribution"
        static let flags = "Larder.flags"
    }

    /// The truth values, each with its bit in an archive.
    private static var flags: [(bit: Int, property: WritableKeyPath<URLRequest, Bool>)] {
        [
            (0, \.allowsCellularAccess), (1, \.allowsExpensiveNetworkAccess),
            (2, \.allowsConstrainedNetworkAccess), (3, \.allowsUltraConstrainedNetworkAccess),
            (4, \.assumesHTTP3Capable), (5, \.requiresDNSSECValidation),
            (6, \.httpShouldHandleCookies), (7, \.httpShouldUsePipelining),
        ]
    }

    /// The truth values in one number, as archives and resume data keep them.
    var flagBits: UInt {
        get { Self.flags.reduce(0) { $0 | (self[keyPath: $1.property] ? 1 << $1.bit : 0) } }
        set {
            for flag in Self.flags { self[keyPath: flag.property] = newValue & 1 << flag.bit != 0 }
        }
    }

    /// The bits that `flagBits` may have.
    static var allFlagBits: UInt { Self.flags.reduce(0) { $0 | 1 << $1.bit } }

    /// Writes it to a keyed archive; others are left as they are.
    func encode(to coder: NSCoder) {
        guard coder.allowsKeyedCoding else { return }
        coder.encode(self.url.map { $0 as NSURL }, forKey: Key.url)
        coder.encode(self.mainDocumentURL.map { $0 as NSURL }, forKey: Key.mainDocumentURL)
        coder.encode(self.httpMethod.map { $0 as NSString }, forKey: Key.method)
        coder.encode(self.allHTTPHeaderFields.map { $0 as NSDictionary }, forKey: Key.fields)
        coder.encode(self.httpBody.map { $0 as NSData }, forKey: Key.body)
        coder.encode(Int(clamping: self.cachePolicy.rawValue), forKey: Key.cachePolicy)
        coder.encode(self.timeoutInterval, forKey: Key.timeout)
        coder.encode(self.isTimeoutSet, forKey: Key.isTimeoutSet)
        coder.encode(Int(clamping: self.networkServiceType.rawValue), forKey: Key.serviceType)
        coder.encode(Int(clamping: self.attribution.rawValue), forKey: Key.attribution)
        coder.encode(Int(clamping: self.flagBits), forKey: Key.flags)
    }

    /// Reads one from a keyed archive; nil where there is none.
    ///
    /// What is missing or makes no sense has its default: an archive may come from anywhere.
    init?(from coder: NSCoder) {
        guard coder.allowsKeyedCoding, coder.containsValue(forKey: Key.cachePolicy) else {
            return nil
        }
        // A key that is missing is not to be asked for: an unarchiver may trap on that.
        func object<T: NSObject & NSCoding>(_ kind: T.Type, _ key: String) -> T? {
            coder.containsValue(forKey: key) ? coder.decodeObject(of: kind, forKey: key) : nil
        }
        self.init(address: object(NSURL.self, Key.url).map { $0 as URL })
        self.mainDocumentURL = object(NSURL.self, Key.mainDocumentURL).map { $0 as URL }
        self.httpMethod = object(NSString.self, Key.method).map { $0 as String }
        if coder.containsValue(forKey: Key.fields) {
            self.allHTTPHeaderFields =
                coder.decodeObject(
                    of: [NSDictionary.self, NSString.self], forKey: Key.fields) as? [String: String]
        }
        self.httpBody = object(NSData.self, Key.body).map { $0 as Data }
        self.cachePolicy =
            Self.number(Key.cachePolicy, in: coder).flatMap(CachePolicy.init)
            ?? .useProtocolCachePolicy
        let timeout = coder.decodeDouble(forKey: Key.timeout)
        // An infinite one is no limit.
        if coder.decodeBool(forKey: Key.isTimeoutSet), !timeout.isNaN {
            self.timeoutInterval = timeout
        }
        self.networkServiceType =
            Self.number(Key.serviceType, in: coder).flatMap(NetworkServiceType.init) ?? .default
        self.attribution =
            Self.number(Key.attribution, in: coder).flatMap(Attribution.init) ?? .developer
        if coder.containsValue(forKey: Key.flags) {
            self.flagBits = UInt(bitPattern: coder.decodeInteger(forKey: Key.flags))
        }
    }

    private static func number(_ key: String, in coder: NSCoder) -> UInt? {
        coder.containsValue(forKey: key) ? UInt(exactly: coder.decodeInteger(forKey: key)) : nil
    }
}
