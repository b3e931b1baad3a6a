import Glibc
import Testing

@testable import LarderDaemon

@Suite("The limit of open files")
struct DescriptorLimitTests {
    @Test(
        "leaves each client two, and something for the rest",
        arguments: [
            (4_096, 65_536, 4_096), (4_096, 4_096, 1_920), (4_096, 1_024, 384), (10, 1_024, 10),
            (4_096, 64, 24), (4_096, 0, 16), (1_000_000, Int.max, 1_000_000),
        ])
    func connections(_ wanted: Int, _ limit: Int, _ expected: Int) {
        #expect(DescriptorLimit.connections(wanted, within: limit) == expected)
    }

    @Test("is raised as far as the process may")
    func raised() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit(rlim_cur: 100, rlim_max: 200)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
            precondition(unsafe setrlimit(resource, &limit) == 0)
            precondition(DescriptorLimit.current == 100)
            DescriptorLimit.raise()
            precondition(DescriptorLimit.current == 200)
        }
    }
}
