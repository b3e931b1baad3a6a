// swift-tools-version: 6.2
import PackageDescription

// A package of its own, because its parts are compiled otherwise than Larder's: instrumented, and
// without a `main`, which libFuzzer brings. `package` declarations do not reach from one package
// into another, so it does not depend on Larder: it compiles the same folders again, by the links
// under `Sources`. Nothing has to be made public for it, and nothing of it is built with Larder.

/// What the sources were written for; see the manifest of Larder.
let house: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .strictMemorySafety(),
]
/// Edges and comparisons are counted in Larder's code alone, not in what it depends on.
let instrumented: [SwiftSetting] =
    house + [.unsafeFlags(["-sanitize=fuzzer", "-enable-testing", "-parse-as-library"])]

let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: instrumented)
}

let package = Package(
    name: "larder-fuzz",
    products: [
        .library(name: "LarderFuzz", type: .static, targets: ["Driver"])
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        .target(name: "CLMDB"),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CXXHash"),
        module("LarderHTTP", ["CLinux", nioCore]),
        module("LarderLMDB", ["CLMDB"]),
        module("LarderConfig", ["Yams"]),
        module("LarderControl"),
        module("LarderPolicy", ["LarderHTTP"]),
        module("LarderArchive", ["LarderHTTP", nioCore]),
        module("LarderCookies", ["LarderHTTP"]),
        module("LarderCredentials", ["LarderHTTP"]),
        module("LarderStore", ["LarderPolicy", "LarderHTTP", nioCore]),
        module(
            "LarderDisk",
            [
                "LarderStore", "LarderPolicy", "LarderHTTP", "LarderLMDB", "CXXHash", "CLinux",
                nioCore,
            ]),
        module(
            "LarderState",
            ["LarderCookies", "LarderCredentials", "LarderHTTP", "LarderLMDB", crypto]),
        .target(
            name: "Parsers",
            dependencies: [
                "LarderHTTP", "LarderPolicy", "LarderCookies", "LarderCredentials", "LarderDisk",
                "LarderStore", "LarderState", "LarderConfig", "LarderControl", "LarderArchive",
                nioCore,
            ],
            path: "Parsers", exclude: ["Tests"], swiftSettings: instrumented),
        .target(
            name: "Driver", dependencies: ["Parsers"], path: "Driver", swiftSettings: instrumented),
    ],
    swiftLanguageModes: [.v6]
)
