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

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: house)
}

let package = Package(
    name: "larder-benchmarks",
    products: [
        .executable(name: "EvictionBench", targets: ["EvictionBench"]),
        .executable(name: "StoreBench", targets: ["StoreBench"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2")
    ],
    targets: [
        .target(name: "CLMDB"),
        .systemLibrary(name: "CXXHash"),
        module("LarderHTTP", [nioCore]),
        module("LarderLMDB", ["CLMDB"]),
        module("LarderPolicy", ["LarderHTTP"]),
        module("LarderStore", ["LarderPolicy", "LarderHTTP", nioCore]),
        module(
            "LarderDisk",
            ["LarderStore", "LarderPolicy", "LarderHTTP", "LarderLMDB", "CXXHash", nioCore]),
        module("EvictionTraces", ["LarderStore", "LarderHTTP"]),
        .executableTarget(
            name: "EvictionBench",
            dependencies: [
                "EvictionTraces", "LarderDisk", "LarderStore", "LarderPolicy", "LarderHTTP",
                nioCore,
            ],
            path: "EvictionBench", swiftSettings: house),
        .executableTarget(
            name: "StoreBench",
            dependencies: [
                "LarderDisk", "LarderStore", "LarderPolicy", "LarderHTTP", "LarderLMDB", nioCore,
            ],
            path: "StoreBench", swiftSettings: house),
    ],
    swiftLanguageModes: [.v6]
)
