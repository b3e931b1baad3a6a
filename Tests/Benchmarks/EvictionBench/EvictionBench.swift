import Glibc

/// Measures eviction: what policies keep of traces, and how long the disk tier's steps take.
///
/// ```
/// EvictionBench policies [SCALE [SEED]]
/// EvictionBench steps DIRECTORY MEBIBYTES BODY-BYTES
/// ```
@main
enum EvictionBench {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "policies":
            let scale = arguments.dropFirst().first.flatMap { Int($0) } ?? 20
            let seed = arguments.dropFirst(2).first.flatMap { UInt64($0) } ?? 1
            PolicyTable(scale: max(1, scale), seed: seed).write()
        case "steps" where arguments.count == 4:
            guard let size = UInt64(arguments[2]), let body = Int(arguments[3]), body > 0 else {
                return Self.explain()
            }
            await StepTimes(directory: arguments[1], mebibytes: size, body: body).run()
        default:
            Self.explain()
        }
    }

    private static func explain() {
        print("usage: EvictionBench policies [SCALE [SEED]]")
        print("       EvictionBench steps DIRECTORY MEBIBYTES BODY-BYTES")
        exit(64)
    }
}
