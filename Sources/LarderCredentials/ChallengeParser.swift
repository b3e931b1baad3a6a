import LarderHTTP

/// Reads a list of challenges from the front (RFC 9110 §11.6.1, §5.6.1).
///
/// A comma separates both challenges and parameters. What follows it is a parameter of the challenge
/// at hand where it is a token and `=`, and else begins the next challenge.
struct ChallengeParser {
    private static let parameterLimit = 64

    private var rest: FieldValue
    /// Whether parameters may follow the challenge at hand: a space stood after its scheme.
    private var mayFollow = false

    init(_ line: FieldValue) {
        self.rest = line
    }

    mutating func challenges() throws(ChallengeFault) -> [Challenge] {
        var found: [Challenge] = []
        while self.skipSeparators() {
            if let parameter = try self.parameter() {
                guard self.mayFollow, var last = found.popLast() else { throw .syntax }
                try Self.add(parameter, to: &last)
                found.append(last)
            } else {
                found.append(try self.challenge())
                guard found.count <= Challenges.countLimit else { throw .tooMany }
            }
            try self.endElement()
        }
        return found
    }

    /// `auth-scheme [ 1*SP ( token68 / auth-param ) ]`.
    private mutating func challenge() throws(ChallengeFault) -> Challenge {
        let name = self.take(while: ASCII.isToken)
        guard !name.isEmpty else { throw .syntax }
        var challenge = Challenge(scheme: AuthenticationScheme(name))
        let spaces = self.take(while: { $0 == ASCII.space })
        self.mayFollow = !spaces.isEmpty
        guard self.mayFollow else { return challenge }
        if let token = self.token68() {
            challenge.token68 = Array(token)
        } else if let first = self.rest.first, first != ASCII.comma {
            guard let parameter = try self.parameter() else { throw .syntax }
            try Self.add(parameter, to: &challenge)
        }
        return challenge
    }

    private static func add(
        _ parameter: Challenge.Parameter, to challenge: inout Challenge
    ) throws(ChallengeFault) {
        guard challenge.token68 == nil else { throw .syntax }
        guard challenge.parameters.count < self.parameterLimit else { throw .tooMany }
        guard challenge[parameter.name] == nil else { throw .repeatedParameter }
        challenge.parameters.append(parameter)
    }

    // MARK: Pieces

    /// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="`, where nothing but the end of
    /// the element follows: else the same bytes begin a parameter.
    private mutating func token68() -> FieldValue? {
        var token = self.rest.prefix(while: Self.isToken68)
        guard !token.isEmpty else { return nil }
        var end = token.endIndex
        while end < self.rest.endIndex, self.rest[end] == ASCII.equals { end += 1 }
        token = self.rest[token.startIndex..<end]
        let after = self.rest[end...].drop(while: ASCII.isOWS)
        guard after.isEmpty || after.first == ASCII.comma else { return nil }
        self.rest = self.rest[end...]
        return token
    }

    private static func isToken68(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default:
            false
        }
    }

    /// `token BWS "=" BWS ( token / quoted-string )`; nil, and nothing taken, where no `=` follows.
    private mutating func parameter() throws(ChallengeFault) -> Challenge.Parameter? {
        let name = self.rest.prefix(while: ASCII.isToken)
        let after = self.rest.dropFirst(name.count).drop(while: ASCII.isOWS)
        guard !name.isEmpty, after.first == ASCII.equals else { return nil }
        self.rest = after.dropFirst().drop(while: ASCII.isOWS)
        let value = try self.rest.first == ASCII.quote ? self.quotedString() : self.tokenValue()
        return Challenge.Parameter(
            name: String(decoding: name.map(ASCII.lowercased), as: UTF8.self), value: value)
    }

    private mutating func tokenValue() throws(ChallengeFault) -> [UInt8] {
        let value = self.take(while: ASCII.isToken)
        guard !value.isEmpty else { throw .syntax }
        return Array(value)
    }

    /// A quoted string (RFC 9110 §5.6.4), its quoted pairs resolved.
    private mutating func quotedString() throws(ChallengeFault) -> [UInt8] {
        var content: [UInt8] = []
        var isEscaped = false
        var index = self.rest.startIndex + 1
        while index < self.rest.endIndex {
            let byte = self.rest[index]
            index += 1
            guard ASCII.isFieldValue(byte) else { throw .syntax }
            if isEscaped {
                content.append(byte)
                isEscaped = false
            } else if byte == ASCII.backslash {
                isEscaped = true
            } else if byte == ASCII.quote {
                self.rest = self.rest[index...]
                return content
            } else {
                content.append(byte)
            }
        }
        throw .syntax
    }

    // MARK: The list

    /// Skips white space and empty elements; false at the end.
    private mutating func skipSeparators() -> Bool {
        self.rest = self.rest.drop { ASCII.isOWS($0) || $0 == ASCII.comma }
        return !self.rest.isEmpty
    }

    private mutating func endElement() throws(ChallengeFault) {
        self.rest = self.rest.drop(while: ASCII.isOWS)
        guard self.rest.isEmpty || self.rest.first == ASCII.comma else { throw .syntax }
    }

    private mutating func take(while condition: (UInt8) -> Bool) -> FieldValue {
        let part = self.rest.prefix(while: condition)
        self.rest = self.rest.dropFirst(part.count)
        return part
    }
}
