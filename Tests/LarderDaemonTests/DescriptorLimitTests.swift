import Glibc
import Testing

@testable import LarderDaemon

@Suite("The limit of open files")
struct DescriptorLimitTests {
    @Test(
        "leaves each client two, and something for the rest",
        arguments: [
            (4_096, 65_536, 0, 4_096), (4_096, 4_096, 0, 1_920), (4_096, 1_024, 0, 384),
            (4_096, 1_024, 40, 369), (10, 1_024, 40, 10), (4_096, 64, 0, 24), (4_096, 60, 30, 7),
            (4_096, 0, 0, 4), (4_096, 20, 40, 4), (1_000_000, Int.max, 40, 1_000_000),
        ])
    func connections(_ wanted: Int, _ limit: Int, _ open: Int, _ expected: Int) {
        #expect(DescriptorLimit.connections(wanted, within: limit, besides: open) == expected)
    }

    @Test("counts what is open")
    func open() async {
        await #expect(processExitsWith: .success) {
            let before = DescriptorLimit.open
            precondition(before > 0)
            for _ in 0..<100 { precondition(dup(0) >= 0) }
            // Other threads of the process open one now and then.
            precondition((before + 80...before + 120).contains(DescriptorLimit.open))
        }
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
