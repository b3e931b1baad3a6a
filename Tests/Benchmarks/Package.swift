// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that nothing of it is built with Larder. `package` declarations do not
// reach from one package into another, so it compiles the same folders again, by the links under
// `Sources`, as they are: what is measured is what runs.

/// What the sources were written for; see the manifest of Larder.
let house: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: house)
}

let package = Package(
    name: "larder-benchmarks",
    products: [
        .executable(name: "EvictionBench", targets: ["EvictionBench"]),
        .executable(name: "RequestCounts", targets: ["RequestCounts"]),
        .executable(name: "StoreBench", targets: ["StoreBench"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2")
    ],
    targets: [
        .target(name: "CLMDB"),
        .target(name: "CBlocks"),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CXXHash"),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl"),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl"),
        module("LarderHTTP", ["CLinux", nioCore]),
        module("LarderLMDB", ["CLMDB"]),
        module("LarderPolicy", ["LarderHTTP"]),
        module("LarderStore", ["LarderPolicy", "LarderHTTP", nioCore]),
        module(
            "LarderDisk",
            [
                "LarderStore", "LarderPolicy", "LarderHTTP", "LarderLMDB", "CXXHash", "CLinux",
                nioCore,
            ]),
        module("LarderCookies", ["LarderHTTP"]),
        module("LarderCredentials", ["LarderHTTP"]),
        module(
            "LarderTransfer",
            ["CBlocks", "CCurl", "COpenSSL", "CLinux", "LarderHTTP", nioCore]),
        module(
            "LarderSession",
            [
                "LarderStore", "LarderPolicy", "LarderCookies", "LarderCredentials", "LarderHTTP",
                nioCore,
            ]),
        module(
            "LarderProxy",
            [
                "LarderSession", "LarderPolicy", "LarderCredentials", "LarderHTTP", "CLinux",
                nioCore, nioPosix,
            ]),
        module("EvictionTraces", ["LarderStore", "LarderHTTP"]),
        .executableTarget(
            name: "EvictionBench",
            dependencies: [
                "EvictionTraces", "LarderDisk", "LarderStore", "LarderPolicy", "LarderHTTP",
                nioCore,
            ],
            path: "EvictionBench", swiftSettings: house),
        .target(name: "CAllocationCounts", path: "CAllocationCounts"),
        .target(name: "CRequestLoad", path: "CRequestLoad"),
        .executableTarget(
            name: "RequestCounts",
            dependencies: [
                "CAllocationCounts", "CRequestLoad", "LarderProxy", "LarderSession", "LarderDisk",
                "LarderTransfer", "LarderStore", "LarderHTTP", nioPosix,
            ],
            path: "RequestCounts", swiftSettings: house,
            // valgrind 3.19 ends at once at what the compiler writes for debuggers (DWARF 5).
            linkerSettings: [.unsafeFlags(["-Xlinker", "-s"])]),
        .executableTarget(
            name: "StoreBench",
            dependencies: [
                "LarderDisk", "LarderStore", "LarderPolicy", "LarderHTTP", "LarderLMDB", nioCore,
            ],
            path: "StoreBench", swiftSettings: house),
    ],
    swiftLanguageModes: [.v6]
)
