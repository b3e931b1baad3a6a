import Glibc
import Parsers

/// The target that the environment names.
///
/// One program holds all targets, so that they are linked once: `LARDER_FUZZ_TARGET` chooses.
private let target: FuzzTarget = {
    let name = unsafe getenv("LARDER_FUZZ_TARGET").map { unsafe String(cString: $0) } ?? ""
    guard let target = FuzzTarget.named(name) else {
        let names = FuzzTarget.all.map(\.name).joined(separator: " ")
        say("LARDER_FUZZ_TARGET names none of: \(names)")
        exit(64)
    }
    return target
}()

private func say(_ text: String) {
    var bytes = Array(text.utf8) + [0x0A]
    _ = unsafe write(STDERR_FILENO, &bytes, bytes.count)
}

/// What libFuzzer calls with every input.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    do throws(Violation) {
        try target.check(input)
    } catch {
        say("\(target.name): broken promise: \(error)")
        abort()
    }
    return 0
}
