"""Tests of the rules that scripts/check adds: each rule finds its fault, and only that."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lib"))

import check_sources  # noqa: E402

HOUSE = [{"tool": "swift", "kind": {"enableUpcomingFeature": {"_0": name}}}
         for name in sorted(check_sources.UPCOMING)]
HOUSE += [{"tool": "swift", "kind": {"strictMemorySafety": {}}},
          {"tool": "swift", "kind": {"treatAllWarnings": {"_0": "error"}}}]


def target(name, *dependencies, settings=HOUSE, kind="regular"):
    return {"name": name, "type": kind, "settings": settings,
            "dependencies": [{"byName": [dependency, None]} for dependency in dependencies]}


def findings(files, *targets):
    """The findings in a package of these files, as `FILE:LINE: text`."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found, _ = check_sources.check(root, {"targets": list(targets)})
        return [f"{file}:{line}: {text}" for file, line, text in sorted(set(found.lines))]


class Width(unittest.TestCase):
    def test_a_comment_is_no_wider_than_the_limit(self):
        limit = check_sources.WIDEST_COMMENT
        for width, count in ((limit, 0), (limit + 1, 1)):
            text = "    /// ".ljust(width, "─") + "\n"
            self.assertEqual(
                len(findings({"Sources/A/A.swift": text}, target("A"))), count, str(width))

    def test_other_lines_are_the_formatters_business(self):
        text = 'let a = "' + "x" * 200 + '"  // a URL\n'
        self.assertEqual(findings({"Sources/A/A.swift": text}, target("A")), [])


class Imports(unittest.TestCase):
    def test_a_declared_one_passes(self):
        text = "package import LarderHTTP\nimport Synchronization\nimport struct Logging.Logger\n"
        self.assertEqual(
            findings({"Sources/A/A.swift": text}, target("A", "LarderHTTP", "Logging")), [])

    def test_one_that_only_a_dependency_declares_is_found(self):
        for line in ("import C", "package import C", "@testable import C", "import class C.X",
                     "@preconcurrency import C  // why"):
            with self.subTest(line):
                found = findings({"Sources/A/A.swift": f"\n{line}\n"}, target("A", "B"))
                self.assertEqual(len(found), 1)
                self.assertIn("Sources/A/A.swift:2: imports C", found[0])

    def test_comments_and_strings_import_nothing(self):
        text = '// import C\n/*\nimport C\n*/\nlet a = """\n    import C\n    """\n'
        self.assertEqual(findings({"Sources/A/A.swift": text}, target("A")), [])

    def test_policy_stays_pure(self):
        found = findings({"Sources/LarderPolicy/A.swift": "import Foundation\n"},
                         target("LarderPolicy"))
        self.assertEqual(len(found), 1)

    def test_test_targets_are_held_to_the_manifest_too(self):
        found = findings({"Tests/ATests/A.swift": "import A\nimport B\n"},
                         target("ATests", "A", kind="test"))
        self.assertEqual(len(found), 1)


class Sources(unittest.TestCase):
    def fault(self, text, file="Sources/A/A.swift"):
        return findings({file: text}, target("A"), target("ATests", kind="test"))

    def test_traps_are_found_in_sources_only(self):
        for text in ("let a = try! f()\n", "let a = b as! C\n", 'fatalError("x")\n'):
            with self.subTest(text):
                self.assertEqual(len(self.fault(text)), 1)
                self.assertEqual(self.fault(text, "Tests/ATests/A.swift"), [])
                self.assertEqual(self.fault(f"// {text}"), [])
                self.assertEqual(self.fault(f'let s = "{text.strip()[:6]}"\n'), [])

    def test_an_unchecked_promise_needs_its_reason(self):
        self.assertEqual(len(self.fault("final class A: @unchecked Sendable {}\n")), 1)
        self.assertEqual(self.fault("// All is behind the lock.\n"
                                    "final class A: @unchecked Sendable {}\n"), [])

    def test_paths_of_a_machine(self):
        self.assertEqual(len(self.fault('let a = "/ho' 'me/me/larder"\n')), 1)
        self.assertEqual(self.fault('let a = "http://host/ho' 'me/page"\n'), [])

    def test_open_tasks_need_a_reference(self):
        self.assertEqual(len(self.fault("// TO" "DO: later\n")), 1)
        self.assertEqual(self.fault("// TO" "DO (#12): later\n"), [])

    def test_tabs_and_length(self):
        self.assertEqual(len(self.fault("\tlet a = 1\n")), 1)
        self.assertEqual(len(self.fault("//\n" * 601)), 1)
        self.assertEqual(self.fault("//\n" * 600), [])


class Settings(unittest.TestCase):
    def test_a_target_without_the_house_settings_is_found(self):
        self.assertEqual(len(findings({}, target("A", settings=[]))), 1)
        self.assertEqual(len(findings({}, target("A", settings=HOUSE[:-1]))), 1)
        self.assertEqual(findings({}, target("A", settings=[], kind="system")), [])
        self.assertEqual(findings({"Sources/A/a.c": "int a;\n"}, target("A", settings=[])), [])


if __name__ == "__main__":
    unittest.main()
