import Foundation
import LarderLMDB
import Synchronization
import Testing

@Suite("A file that was deleted while it was open")
struct ReusedInodeTests {
    @Test("keeps nobody from opening a new one, which may get its inode")
    func reused() throws {
        let directory = NSTemporaryDirectory() + "reused-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let failures = Mutex<[String]>([])
        DispatchQueue.concurrentPerform(iterations: 4) { lane in
            for round in 0..<60 {
                let path = "\(directory)/\(lane)-\(round)"
                do {
                    let environment = try Environment.open(
                        path: path, options: EnvironmentOptions(mapSize: 1 << 20))
                    _ = unsafe unlink(path)
                    _ = unsafe unlink(path + "-lock")
                    environment.close()
                } catch {
                    failures.withLock { $0.append("\(error)") }
                }
            }
        }
        #expect(failures.withLock { $0 } == [])
    }
}
