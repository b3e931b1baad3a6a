package import LarderHTTP

/// Why a challenge, or an answer to one, is not understood.
package enum ChallengeFault: String, Error, Sendable, CaseIterable {
    /// Something stands where RFC 9110 §11.6.1 has nothing.
    case syntax
    /// One parameter twice in a challenge (RFC 9110 §11.2: it occurs once).
    case repeatedParameter = "repeated-parameter"
    /// More challenges in a message, or parameters in a challenge, than anyone needs.
    case tooMany = "too-many"
    /// A parameter that the scheme requires is not there.
    case missingParameter = "missing-parameter"
    /// A parameter has a value that the scheme does not give it.
    case badParameter = "bad-parameter"
    /// The algorithm is unknown, or the hash is not to be had.
    case unsupportedAlgorithm = "unsupported-algorithm"
    /// None of the offered qualities of protection can be given.
    case unsupportedProtection = "unsupported-protection"
    /// Another scheme's challenge.
    case otherScheme = "other-scheme"
}

/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 §11.3).
package struct Challenge: Sendable, Hashable {
    package struct Parameter: Sendable, Hashable {
        /// In lower case: names are compared without regard to it.
        package let name: String
        /// Octets, the quotes and backslashes of a quoted string resolved.
        package let value: [UInt8]
    }

    package let scheme: AuthenticationScheme
    /// What stands instead of parameters: `YII…=` after `Negotiate`.
    package internal(set) var token68: [UInt8]?
    package internal(set) var parameters: [Parameter] = []

    init(scheme: AuthenticationScheme) {
        self.scheme = scheme
    }

    package subscript(name: String) -> [UInt8]? {
        self.parameters.first { $0.name == name }?.value
    }

    /// A parameter that is a word, in lower case.
    func word(_ name: String) -> String? {
        self[name].map { String(decoding: $0.map(ASCII.lowercased), as: UTF8.self) }
    }

    /// The realm as text; nil where there is none.
    ///
    /// Octets that are not UTF-8 are taken for Latin-1, as they were meant for most of HTTP's life.
    package var realm: String? {
        guard let octets = self["realm"] else { return nil }
        return String(validating: octets, as: UTF8.self)
            ?? String(String.UnicodeScalarView(octets.map { Unicode.Scalar($0) }))
    }
}

extension Challenge {
    /// The challenge; one of Basic that has no realm with an empty one.
    ///
    /// RFC 7617 §2 requires a realm. Simple devices give none, and browsers ask for a login all the same.
    package var withBasicRealm: Challenge {
        guard self.scheme == .basic, self.token68 == nil, self["realm"] == nil else { return self }
        var completed = self
        completed.parameters.append(Parameter(name: "realm", value: []))
        return completed
    }
}

/// The challenges of a message.
package struct Challenges: Sendable, Equatable {
    /// All that were understood, in order.
    package private(set) var list: [Challenge] = []
    /// What was wrong with each line that was not.
    package private(set) var faults: [ChallengeFault] = []

    package static let countLimit = 32

    /// Reads all lines of the field, each by itself.
    ///
    /// A line with junk in it yields nothing: where a challenge's parameters are not certain, a
    /// secret must not be sent on their account. The other lines are not touched by it. RFC 9110
    /// §5.3 would let one challenge reach across two lines; none does, and such a line is junk.
    package init(_ fields: Fields, name: FieldName = FieldName(.wwwAuthenticate)) {
        for line in fields.values(name) {
            do throws(ChallengeFault) {
                let found = try Self.parse(line)
                guard self.list.count + found.count <= Self.countLimit else { throw .tooMany }
                self.list += found
            } catch {
                self.faults.append(error)
            }
        }
    }

    /// The challenges of one line: `1#challenge`, empty list elements allowed.
    package static func parse(_ line: FieldValue) throws(ChallengeFault) -> [Challenge] {
        var parser = ChallengeParser(line)
        return try parser.challenges()
    }

    /// The challenges that can be answered, best first.
    ///
    /// By scheme in the order of `schemes`; within one scheme as the server lists them, which for
    /// Digest is the order of its preference (RFC 7616 §3.7).
    package func ranked(
        by schemes: [AuthenticationScheme] = AuthenticationScheme.byStrength
    ) -> [Challenge] {
        schemes.flatMap { scheme in self.list.filter { $0.scheme == scheme } }
    }
}
