import Glibc
import LarderDisk
import LarderHTTP
import LarderLMDB

/// Fills disk stores and measures them; `scripts/bench-store` drives it.
@main
struct StoreBench {
    static func main() async {
        do {
            let options = try Options(Array(CommandLine.arguments.dropFirst()))
            switch options.command {
            case .fill: try await fill(options)
            case .churn: try await churn(options)
            case .read: try await read(options)
            case .lookupAbsent: try await lookupAbsent(options)
            case .open: try await open(options)
            }
        } catch let error as UsageError {
            print("StoreBench: \(error.message)\n\(Options.usage)")
            exit(64)
        } catch {
            print("StoreBench: \(error)")
            exit(1)
        }
    }

    static func openStore(_ options: Options) throws -> DiskStore {
        var configuration = DiskConfiguration(
            directory: options.directory, capacity: options.capacity)
        configuration.maximumObject = .gibibytes(1 << 20)
        return try DiskStore.open(
            configuration, clock: { now() }, report: { print("event: \($0)") })
    }

    static func now() -> Timestamp {
        var moment = timespec()
        _ = unsafe clock_gettime(CLOCK_REALTIME, &moment)
        return Timestamp(seconds: Int64(moment.tv_sec))
    }

    static func close(_ store: DiskStore) async {
        await withCheckedContinuation { continuation in store.close { continuation.resume() } }
    }

    static func environment(_ options: Options) throws -> Environment {
        let path = options.directory + "/cache.mdb"
        guard let environment = Environment.shared(path: path) else {
            throw UsageError(message: "\(path) is not open")
        }
        return environment
    }

    /// The largest body: all that are written at the same time must fit in half of the capacity.
    static func bound(_ options: Options) -> UInt64 {
        options.capacity.bytes / max(16, UInt64(options.streams) * 2)
    }
}
