internal import CCrypt
import Glibc
import LarderCredentials

/// Passwords against their hashes, by the system's crypt(3).
///
/// It takes from milliseconds to a second, and is therefore not for event loops. Any thread: every
/// call has memory of its own, which is cleared before it goes.
enum SystemCrypt {
    /// `CRYPT_MAX_PASSPHRASE_SIZE`, its final zero included.
    private static let longestPhrase = 512
    /// "sizeof (struct crypt_data)", to which the parts in crypt.h add up (crypt_rn(3)).
    private static let dataSize = 32_768

    /// Whether crypt(3) can work with a hash on this system.
    static func knows(_ hash: PasswordHash) -> Bool {
        var setting = hash.text.map { CChar(bitPattern: $0) }
        setting.append(0)
        switch unsafe crypt_checksalt(setting) {
        case CRYPT_SALT_INVALID, CRYPT_SALT_METHOD_DISABLED: return false
        // Among what is called legacy is SHA-256, which is weaker than others but not weak.
        default: return true
        }
    }

    /// Whether this is the password that was hashed.
    ///
    /// One that crypt(3) cannot take whole is wrong, though bcrypt looks at its first 72 octets only.
    static func matches(_ password: Secret, _ hash: PasswordHash) -> Bool {
        let octets = password.revealed
        // A zero would end the phrase: all that begins like it would be right.
        guard octets.count < Self.longestPhrase, !octets.contains(0), !hash.text.contains(0) else {
            return false
        }
        return unsafe withCleared(octets.count + 1) { phrase in
            unsafe phrase.copyBytes(from: octets)
            return unsafe withCleared(hash.text.count + 1) { setting in
                unsafe setting.copyBytes(from: hash.text)
                return unsafe withCleared(Self.dataSize) { data in
                    unsafe self.matches(phrase, setting, data)
                }
            }
        }
    }

    private static func matches(
        _ phrase: UnsafeMutableRawBufferPointer, _ setting: UnsafeMutableRawBufferPointer,
        _ data: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let phraseStart = phrase.baseAddress,
            let settingStart = setting.baseAddress,
            let dataStart = data.baseAddress,
            let answer = unsafe crypt_rn(
                phraseStart.assumingMemoryBound(to: CChar.self),
                settingStart.assumingMemoryBound(to: CChar.self), dataStart,
                CInt(clamping: data.count))
        else { return false }
        // "Some systems do not return NULL when they fail, but an invalid hash" that begins with an
        // asterisk (crypt(3)): `*0`, or `*1` where the setting was `*0`.
        guard unsafe answer.pointee != CChar(bitPattern: UInt8(ascii: "*")) else { return false }
        // All of it is compared, whatever its first byte says; the final zero, too.
        var difference: UInt8 = 0
        for i in setting.indices {
            let byte = unsafe UInt8(bitPattern: answer[i])
            difference |= unsafe byte ^ setting[i]
            if byte == 0 { difference |= i == setting.count - 1 ? 0 : 1; break }
        }
        return difference == 0
    }

    /// Lends so many zeroed octets, and clears them afterwards.
    private static func withCleared<R>(
        _ count: Int, _ body: (UnsafeMutableRawBufferPointer) -> R
    ) -> R {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        unsafe memory.initializeMemory(as: UInt8.self, repeating: 0)
        defer {
            if let start = memory.baseAddress { unsafe explicit_bzero(start, count) }
            unsafe memory.deallocate()
        }
        return unsafe body(memory)
    }
}
