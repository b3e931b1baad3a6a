// What Foundation offers on Apple's platforms for any sequence of bytes, and lacks on Linux.

extension AsyncSequence where Element == UInt8 {
    /// The lines of UTF-8 text, without their ends and without empty ones.
    ///
    /// A line ends with LF, CR, CR LF, VT, FF, NEL, LINE SEPARATOR or PARAGRAPH SEPARATOR. Empty lines
    /// are left out, as Apple's are. What is no UTF-8 becomes U+FFFD.
    public var lines: AsyncLineSequence<Self> { AsyncLineSequence(base: self) }

    /// The characters of UTF-8 text.
    ///
    /// What is no UTF-8 becomes U+FFFD.
    public var characters: AsyncCharacterSequence<Self> { AsyncCharacterSequence(base: self) }

    /// The Unicode scalars of UTF-8 text.
    ///
    /// What is no UTF-8 becomes U+FFFD.
    public var unicodeScalars: AsyncUnicodeScalarSequence<Self> {
        AsyncUnicodeScalarSequence(base: self)
    }
}

/// The lines of a sequence of bytes; see `lines`.
public struct AsyncLineSequence<Base: AsyncSequence>: AsyncSequence where Base.Element == UInt8 {
    /// A line, without its end.
    public typealias Element = String
    public typealias Failure = Base.Failure

    let base: Base

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: self.base.makeAsyncIterator())
    }

    /// Takes the lines.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// A line, without its end.
        public typealias Element = String
        public typealias Failure = Base.Failure

        private var base: Base.AsyncIterator
        private var line = LineAssembler()

        init(base: Base.AsyncIterator) {
            self.base = base
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Failure) -> String? {
            do throws(Failure) {
                while let byte = try await self.base.next(isolation: actor) {
                    if let line = self.line.push(byte) { return line }
                }
            } catch {
                // Behind an error comes the end, and no beginning of a line.
                self.line = LineAssembler()
                throw error
            }
            return self.line.finish()
        }

        public mutating func next() async throws(Failure) -> String? {
            try await self.next(isolation: #isolation)
        }
    }
}

extension AsyncLineSequence: Sendable where Base: Sendable {}

/// The Unicode scalars of a sequence of bytes; see `unicodeScalars`.
public struct AsyncUnicodeScalarSequence<Base: AsyncSequence>: AsyncSequence
where Base.Element == UInt8 {
    /// A scalar of Unicode.
    public typealias Element = Unicode.Scalar
    public typealias Failure = Base.Failure

    let base: Base

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: self.base.makeAsyncIterator())
    }

    /// Takes the scalars.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// A scalar of Unicode.
        public typealias Element = Unicode.Scalar
        public typealias Failure = Base.Failure

        private var base: Base.AsyncIterator
        private var scalars = ScalarAssembler()

        init(base: Base.AsyncIterator) {
            self.base = base
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Failure) -> Unicode.Scalar? {
            while true {
                if let scalar = self.scalars.next() { return scalar }
                let next: UInt8?
                do throws(Failure) {
                    next = try await self.base.next(isolation: actor)
                } catch {
                    self.scalars = ScalarAssembler()
                    throw error
                }
                guard let next else {
                    self.scalars.finish()
                    return self.scalars.next()
                }
                self.scalars.push(next)
            }
        }

        public mutating func next() async throws(Failure) -> Unicode.Scalar? {
            try await self.next(isolation: #isolation)
        }
    }
}

extension AsyncUnicodeScalarSequence: Sendable where Base: Sendable {}

/// The characters of a sequence of bytes; see `characters`.
public struct AsyncCharacterSequence<Base: AsyncSequence>: AsyncSequence
where Base.Element == UInt8 {
    /// A character.
    public typealias Element = Character
    public typealias Failure = Base.Failure

    let base: Base

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: self.base.unicodeScalars.makeAsyncIterator())
    }

    /// Takes the characters.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// A character.
        public typealias Element = Character
        public typealias Failure = Base.Failure

        private var base: AsyncUnicodeScalarSequence<Base>.AsyncIterator
        private var character = CharacterAssembler()

        init(base: AsyncUnicodeScalarSequence<Base>.AsyncIterator) {
            self.base = base
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(Failure) -> Character? {
            do throws(Failure) {
                while let scalar = try await self.base.next(isolation: actor) {
                    if let character = self.character.push(scalar) { return character }
                }
            } catch {
                self.character = CharacterAssembler()
                throw error
            }
            return self.character.finish()
        }

        public mutating func next() async throws(Failure) -> Character? {
            try await self.next(isolation: #isolation)
        }
    }
}

extension AsyncCharacterSequence: Sendable where Base: Sendable {}
