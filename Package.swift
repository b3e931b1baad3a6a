// swift-tools-version: 6.2
import PackageDescription

#if canImport(Glibc)
    import Glibc
#endif

// Every target, tests included, is built with these. A warning is an error.
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
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let arguments: Target.Dependency = .product(
    name: "ArgumentParser", package: "swift-argument-parser")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")

/// Has the program's 115,000 relocations packed.
///
/// Each start reads them, 2.8 MiB otherwise. glibc knows the form from 2.36 on, and lld, which comes
/// with Swift, makes it.
func packedRelocations() -> [String] {
    #if canImport(Glibc)
        var text = [CChar](repeating: 0, count: 64)
        let count = confstr(2, &text, text.count)  // _CS_GNU_LIBC_VERSION
        let bytes = text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
        let parts = String(decoding: bytes, as: UTF8.self)
            .split { $0 == " " || $0 == "." }.compactMap { Int($0) }
        guard count > 0, parts.count >= 2, (parts[0], parts[1]) >= (2, 36) else { return [] }
        return ["-use-ld=lld", "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs"]
    #else
        return []
    #endif
}

func module(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: house)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: house)
}

let package = Package(
    name: "larder",
    products: [
        .executable(name: "larder", targets: ["larder"]),
        .library(name: "URLLoading", targets: ["URLLoading"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        // Floor 0: the C libraries.
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        // The one that libcurl4-openssl-dev's libcurl does its TLS with.
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CXXHash", providers: [.apt(["libxxhash-dev"])]),
        .systemLibrary(name: "CPSL", pkgConfig: "libpsl", providers: [.apt(["libpsl-dev"])]),
        .systemLibrary(name: "CCrypt", pkgConfig: "libcrypt", providers: [.apt(["libcrypt-dev"])]),
        .systemLibrary(name: "CLinux"),
        // Of liblmdb-dev, with state of its own, of which there must be one: so it is compiled.
        .target(name: "CLMDB"),
        // Memory for libcurl; what each thread has in hand is state, too.
        .target(name: "CBlocks"),
        // For the program alone: a library does not choose the memory of those who use it.
        .target(name: "CJemalloc", linkerSettings: [.linkedLibrary("jemalloc")]),
        // The program's arguments, which the C library hands to its constructor.
        .target(name: "CStart"),

        // Floor 1
        module("LarderHTTP", ["CLinux", nioCore]),
        module("LarderLMDB", ["CLMDB"]),
        module("LarderConfig", ["Yams"]),
        module("LarderControl", []),

        // Floor 2
        module("LarderPolicy", ["LarderHTTP"]),
        module("LarderArchive", ["LarderHTTP", nioCore]),
        module("LarderCookies", ["LarderHTTP"]),
        module("LarderCredentials", ["LarderHTTP"]),
        module(
            "LarderTransfer",
            ["CBlocks", "CCurl", "COpenSSL", "CLinux", "LarderHTTP", nioCore]),

        // Floor 3
        module("LarderStore", ["LarderPolicy", "LarderHTTP", nioCore]),

        // Floor 4
        module(
            "LarderSession",
            [
                "LarderStore", "LarderPolicy", "LarderCookies", "LarderCredentials", "LarderHTTP",
                nioCore,
            ]),
        module(
            "LarderState",
            ["LarderCookies", "LarderCredentials", "LarderHTTP", "LarderLMDB", crypto]),
        module(
            "LarderDisk",
            [
                "LarderStore", "LarderPolicy", "LarderHTTP", "LarderLMDB", "CXXHash", "CLinux",
                nioCore,
            ]),

        // Floor 5
        module(
            "LarderEngine",
            [
                "LarderSession", "LarderDisk", "LarderState", "LarderTransfer", "LarderStore",
                "LarderPolicy", "LarderCookies", "LarderCredentials", "LarderHTTP", "CPSL", crypto,
                nioCore,
            ]),

        // Floor 6
        module(
            "LarderProxy",
            [
                "LarderSession", "LarderPolicy", "LarderCredentials", "LarderHTTP", "CLinux",
                nioCore, nioPosix,
            ]),

        module(
            "URLLoading",
            [
                "LarderEngine", "LarderSession", "LarderDisk", "LarderState", "LarderTransfer",
                "LarderStore", "LarderPolicy", "LarderCookies", "LarderCredentials", "LarderHTTP",
                "CLinux", nioCore,
            ]),

        // Floor 7
        module(
            "LarderDaemon",
            [
                "LarderProxy", "LarderEngine", "LarderSession", "LarderDisk", "LarderState",
                "LarderTransfer", "LarderStore", "LarderPolicy", "LarderArchive", "LarderCookies",
                "LarderCredentials", "LarderHTTP", "LarderConfig", "LarderControl", "CCrypt",
                "CLinux", nioCore, nioPosix, logging, crypto,
            ]),

        // Floor 8
        .executableTarget(
            name: "larder",
            dependencies: [
                "LarderDaemon", "LarderDisk", "LarderState", "LarderStore", "LarderPolicy",
                "LarderArchive", "LarderCookies", "LarderCredentials", "LarderHTTP",
                "LarderControl", "LarderConfig", "CJemalloc", "CStart", arguments, crypto,
            ],
            swiftSettings: house,
            // Swift's own library within: no jump through a table for every retain and release,
            // and nothing of the toolchain is needed where it runs. This target is in no library
            // product, so that packages can depend on those nevertheless.
            linkerSettings: [
                .unsafeFlags(
                    [
                        "-static-stdlib", "-Xlinker", "--start-group", "-lFoundation",
                        "-lFoundationInternationalization", "-lFoundationEssentials",
                        "-lCoreFoundation", "-l_FoundationICU", "-l_FoundationCShims",
                        "-l_FoundationCollections", "-Xlinker", "--end-group",
                    ] + packedRelocations(), .when(configuration: .release))
            ]),

        // An example: what the library can do, played against an origin of its own.
        .executableTarget(
            name: "url-loading-tour", dependencies: ["URLLoading", nioCore, nioPosix],
            swiftSettings: house),

        // Tests
        .target(name: "SeededNumbers", path: "Tests/SeededNumbers", swiftSettings: house),
        tests("LarderHTTPTests", ["SeededNumbers", "LarderHTTP", "CLinux", nioCore]),
        tests("LarderPolicyTests", ["SeededNumbers", "LarderPolicy", "LarderHTTP"]),
        tests("LarderArchiveTests", ["LarderArchive", "LarderHTTP", nioCore]),
        tests("LarderCookiesTests", ["SeededNumbers", "LarderCookies", "LarderHTTP"]),
        tests(
            "LarderCredentialsTests",
            ["SeededNumbers", "LarderCredentials", "LarderHTTP", crypto]),
        .target(
            name: "EvictionTraces", dependencies: ["SeededNumbers", "LarderStore", "LarderHTTP"],
            path: "Tests/EvictionTraces", swiftSettings: house),
        tests(
            "LarderStoreTests",
            [
                "SeededNumbers", "EvictionTraces", "LarderStore", "LarderPolicy", "LarderHTTP",
                nioCore,
            ]),
        tests("LarderLMDBTests", ["SeededNumbers", "LarderLMDB"]),
        tests(
            "LarderDiskTests",
            [
                "SeededNumbers", "LarderDisk", "LarderStore", "LarderPolicy", "LarderHTTP",
                "LarderLMDB", "CXXHash", nioCore,
            ]),
        tests(
            "LarderTransferTests",
            [
                "SeededNumbers", "LarderProcess", "LarderTransfer", "CBlocks", "CCurl",
                "LarderHTTP", nioCore,
            ]),
        tests(
            "LarderStateTests",
            [
                "LarderState", "LarderCookies", "LarderCredentials", "LarderLMDB", "LarderHTTP",
                crypto,
            ]),
        tests(
            "LarderSessionTests",
            [
                "SeededNumbers", "LarderSession", "LarderDisk", "LarderStore", "LarderPolicy",
                "LarderCookies",
                "LarderCredentials", "LarderHTTP", nioCore,
            ]),
        tests(
            "LarderEngineTests",
            [
                "LarderEngine", "LarderSession", "LarderState", "LarderTransfer", "LarderStore",
                "LarderPolicy", "LarderCookies", "LarderCredentials", "LarderHTTP", nioCore,
            ]),
        tests(
            "URLLoadingTests",
            [
                "URLLoading", "url-loading-tour", "LarderProcess", "SeededNumbers", "LarderEngine",
                "LarderSession",
                "LarderState", "LarderDisk", "LarderStore", "LarderTransfer", "LarderPolicy",
                "LarderCookies", "LarderCredentials", "LarderHTTP", nioCore, nioPosix,
            ]),
        // What scripts/bench url-loading runs.
        .executableTarget(
            name: "URLLoadingBench", dependencies: ["URLLoading"], path: "Tests/URLLoadingBench",
            swiftSettings: house),
        tests(
            "LarderProxyTests",
            [
                "LarderProxy", "LarderSession", "LarderStore", "LarderPolicy", "LarderCredentials",
                "LarderHTTP", "SeededNumbers",
                nioCore, nioPosix, nioEmbedded,
            ]),
        tests("LarderConfigTests", ["SeededNumbers", "LarderConfig"]),
        tests("LarderControlTests", ["LarderControl"]),
        tests(
            "LarderDaemonTests",
            [
                "LarderDaemon", "LarderProxy", "LarderEngine", "LarderSession", "LarderState",
                "LarderTransfer", "LarderDisk", "LarderStore", "LarderPolicy", "LarderCookies",
                "LarderCredentials", "LarderHTTP", "LarderConfig", "LarderControl", logging,
                nioCore, nioEmbedded, nioPosix,
            ]),
        tests(
            "LarderCommandTests",
            [
                "SeededNumbers", "larder", "LarderDaemon", "LarderDisk", "LarderState",
                "LarderStore",
                "LarderPolicy", "LarderCookies", "LarderCredentials", "LarderHTTP", "LarderConfig",
                "LarderControl", arguments, nioCore,
            ]),
        // What the package under Tests/Fuzz fuzzes, driven by seeds and by what was found.
        .testTarget(
            name: "LarderFuzzTests",
            dependencies: [
                "SeededNumbers", "LarderHTTP", "LarderPolicy", "LarderCookies", "LarderCredentials",
                "LarderDisk",
                "LarderStore", "LarderState", "LarderConfig", "LarderControl", "LarderArchive",
                nioCore,
            ],
            path: "Tests/Fuzz/Parsers", swiftSettings: house),
        .systemLibrary(name: "CSpawn", path: "Tests/CSpawn"),
        // A whole larder, with a scripted origin and clients: what the last two test with.
        .target(
            name: "LarderProcess", dependencies: ["CSpawn", nioCore, nioPosix],
            path: "Tests/LarderProcess", swiftSettings: house),
        // Loads, kills and starves a store or a whole larder, and judges every byte: scripts/soak.
        .executableTarget(
            name: "LarderStress",
            dependencies: [
                "SeededNumbers", "LarderDisk", "LarderStore", "LarderPolicy", "LarderHTTP",
                "LarderLMDB", "CSpawn", nioCore,
                arguments,
            ],
            path: "Tests/LarderStress", swiftSettings: house),
        tests(
            "LarderScenarioTests",
            [
                "SeededNumbers", "larder", "LarderProcess", "LarderStress", "LarderDisk",
                "LarderStore",
                "LarderPolicy", "LarderHTTP",
            ]),
        tests("LarderConformanceTests", ["larder", "LarderProcess"]),
    ],
    swiftLanguageModes: [.v6]
)
