/// A promise of a parser's that an input showed to be broken.
package struct Violation: Error, CustomStringConvertible {
    /// The promise, and what came instead.
    package let description: String
}

/// Notes that a promise is broken unless the condition holds.
func hold(_ condition: Bool, _ promise: @autoclosure () -> String) throws(Violation) {
    guard condition else { throw Violation(description: promise()) }
}

/// One parser, or a family of them, with what it promises for any bytes at all.
///
/// The promises are more than the absence of traps: that bytes mean the same however they are cut,
/// that what was read means the same when it is written and read again, that numbers stay within
/// their bounds. libFuzzer drives them, and so do the tests of every run.
package struct FuzzTarget: Sendable {
    /// Also the name of its folder under `Seeds`.
    package let name: String
    private let promises: @Sendable ([UInt8]) throws(Violation) -> Void

    private init(
        _ name: String, _ promises: @escaping @Sendable ([UInt8]) throws(Violation) -> Void
    ) {
        self.name = name
        self.promises = promises
    }

    /// Shows the input to the parser.
    package func check(_ input: [UInt8]) throws(Violation) {
        try self.promises(input)
    }

    package static let all: [FuzzTarget] = [
        FuzzTarget("request-head", RequestHeadPromises.check),
        FuzzTarget("response-head", ResponseHeadPromises.check),
        FuzzTarget("chunked", ChunkedPromises.check),
        FuzzTarget("cache-control", CacheControlPromises.check),
        FuzzTarget("dates", DatePromises.check),
        FuzzTarget("entity-tags", EntityTagPromises.check),
        FuzzTarget("ranges", RangePromises.check),
        FuzzTarget("structured-fields", StructuredFieldPromises.check),
        FuzzTarget("field-lists", FieldListPromises.check),
        FuzzTarget("target-uri", TargetURIPromises.check),
        FuzzTarget("policy", PolicyPromises.check),
        FuzzTarget("cookies", CookiePromises.check),
        FuzzTarget("cookie-json", CookieJSONPromises.check),
        FuzzTarget("cookie-jar", HostileJarPromises.check),
        FuzzTarget("credentials", CredentialPromises.check),
        FuzzTarget("credential-files", CredentialFilePromises.check),
        FuzzTarget("state-records", StateRecordPromises.check),
        FuzzTarget("disk-records", DiskRecordPromises.check),
        FuzzTarget("configuration", ConfigurationPromises.check),
        FuzzTarget("control", ControlPromises.check),
        FuzzTarget("warc", WARCPromises.check),
        FuzzTarget("har", HARPromises.check),
    ]

    package static func named(_ name: String) -> FuzzTarget? {
        self.all.first { $0.name == name }
    }
}
