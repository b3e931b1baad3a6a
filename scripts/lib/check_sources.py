"""The house's rules on sources that neither compiler nor formatter holds us to.

    swift package dump-package | check_sources.py ROOT

Prints each finding as FILE:LINE: what is wrong, and ends with status 1 when there was one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

LONGEST_FILE = 600
# What the formatter does not break: beyond 100 for a table or a drawing, and no further.
WIDEST_COMMENT = 112

# What comes with the toolchain and needs no declaration.
TOOLCHAIN = {
    "Dispatch", "Foundation", "FoundationEssentials", "FoundationNetworking", "Glibc", "Musl",
    "Observation", "RegexBuilder", "Swift", "Synchronization", "Testing",
}
# Modules that stay pure, and what therefore stays outside of them.
IMPURE = {"Dispatch", "Foundation", "FoundationEssentials", "FoundationNetworking", "Glibc", "Musl",
          "Observation", "Synchronization"}
PURE = {name: IMPURE for name in ("LarderPolicy", "LarderCookies", "LarderCredentials")}
# explicit_bzero(3): memory can be cleared for certain by the C library alone.
IMPURE_FILES = {("LarderCredentials", "SecretBytes.swift", "Glibc")}
UPCOMING = {"ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility",
            "NonisolatedNonsendingByDefault"}

IMPORT = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?"
    r"import\s+(?:(?:struct|class|enum|protocol|typealias|func|var|let|actor)\s+)?(\w+)")
CODE_OR_NOT = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|(?P<string>(?P<hashes>\#+)".*?"(?P=hashes)|""".*?"""|"(?:\\.|[^"\\\n])*")', re.S)
FORBIDDEN_IN_SOURCES = [
    (re.compile(r"\btry!"), "try! traps: throw, or handle the error"),
    (re.compile(r"\bas!"), "as! traps: use as? and handle nil"),
    (re.compile(r"\bfatalError\b"), "fatalError: nothing from outside may trap; for our own "
     "promises there is preconditionFailure"),
    (re.compile(r"\b(?:Thread\.sleep|usleep)\b"), "no sleeping: wait for an event"),
]
NEEDS_REASON = re.compile(r"@unchecked\s+Sendable|nonisolated\(unsafe\)|@preconcurrency")
MACHINE_PATH = re.compile(r"(?<![\w.:/@$}*-])/(?:home|Users|root|work|workspace|private/tmp)/[\w.]")
OPEN_TASK = re.compile(r"\b(?:TO" r"DO|FIX" r"ME)\b(?!\s*\(#\d+\))")


class Findings:
    def __init__(self):
        self.lines = []

    def add(self, file, line, text):
        self.lines.append((str(file), line, text))

    def report(self):
        for file, line, text in sorted(set(self.lines)):
            print(f"{file}:{line}: {text}")
        return 1 if self.lines else 0


def files_of(root):
    """The project's files: what git tracks or would track; without git, all but hidden folders."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if not any(part.startswith(".build") for part in path.parts)]
    return sorted({pathlib.Path(name) for name in names if (root / name).is_file()})


def without_comments_and_strings(text):
    """Swift code with comments and string contents blanked; lines keep their numbers."""
    def blank(match):
        kept = "" if match.group("comment") else '""'
        return kept + "\n" * match.group(0).count("\n")
    return CODE_OR_NOT.sub(blank, text)


def declared_dependencies(target):
    names = set()
    for dependency in target["dependencies"]:
        for kind in ("byName", "target", "product"):
            if kind in dependency:
                names.add(dependency[kind][0])
    return names


def check_imports(target, file, code, findings):
    """SwiftPM lets a target import what only its dependencies declare: here it may not."""
    imported = set()
    allowed = declared_dependencies(target) | TOOLCHAIN | {target["name"]}
    for number, line in enumerate(code.splitlines(), 1):
        match = IMPORT.match(line)
        if not match:
            continue
        name = match.group(1)
        imported.add(name)
        if name not in allowed:
            findings.add(file, number, f"imports {name}, which Package.swift does not declare for "
                         f"{target['name']}")
        exception = (target["name"], pathlib.Path(file).name, name) in IMPURE_FILES
        if name in PURE.get(target["name"], ()) and not exception:
            findings.add(file, number, f"{target['name']} is pure: it must not import {name}")
    return imported


def check_settings(target, findings):
    """Every Swift target is built with the house's settings."""
    kinds = [setting["kind"] for setting in target["settings"] if setting["tool"] == "swift"]
    upcoming = {kind["enableUpcomingFeature"]["_0"] for kind in kinds
                if "enableUpcomingFeature" in kind}
    lacking = sorted(UPCOMING - upcoming)
    if not any("strictMemorySafety" in kind for kind in kinds):
        lacking.append("strictMemorySafety")
    if not any(kind.get("treatAllWarnings", {}).get("_0") == "error" for kind in kinds):
        lacking.append("treatAllWarnings(as: .error)")
    if lacking:
        findings.add("Package.swift", 1, f"{target['name']} lacks {', '.join(lacking)}")


def check_swift(file, text, code, findings):
    lines = text.splitlines()
    in_sources = file.parts[0] == "Sources"
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("//") and len(line) > WIDEST_COMMENT:
            findings.add(file, number, f"a comment of {len(line)} columns: the limit is "
                         f"{WIDEST_COMMENT}")
    for number, line in enumerate(code.splitlines(), 1):
        for pattern, reason in FORBIDDEN_IN_SOURCES if in_sources else ():
            if pattern.search(line):
                findings.add(file, number, reason)
        if in_sources and NEEDS_REASON.search(line) and not has_reason(lines, number):
            findings.add(file, number, "needs a comment that names the invariant")


def has_reason(lines, number):
    """A comment in the line, or in the comments and attributes directly above it."""
    if "//" in lines[number - 1]:
        return True
    above = number - 2
    while above >= 0 and lines[above].lstrip().startswith("@"):
        above -= 1
    return above >= 0 and lines[above].lstrip().startswith("//")


def check_text(root, file, text, findings):
    lines = text.splitlines()
    if len(lines) > LONGEST_FILE and file.suffix in (".swift", ".py", ".c", ".h", ""):
        findings.add(file, LONGEST_FILE + 1, f"{len(lines)} lines: the limit is {LONGEST_FILE}")
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            findings.add(file, number, "a tab")
        if MACHINE_PATH.search(line) or (len(str(root)) > 5 and str(root) in line):
            findings.add(file, number, "an absolute path of some machine")
        if OPEN_TASK.search(line):
            findings.add(file, number, "an open task without a reference, as in (#12)")


def read(path):
    """A file's text; None for what is not text."""
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_sample(file):
    """Inputs of the fuzz targets are bytes, even where they look like text."""
    return file.parts[:2] == ("Tests", "Fuzz") and file.parts[2] in ("Seeds", "Findings")


def target_folder(target):
    if target.get("path"):
        return pathlib.Path(target["path"])
    return pathlib.Path("Tests" if target["type"] == "test" else "Sources") / target["name"]


def is_c(root, target):
    """Whether a target is compiled as C; one has a single language."""
    return any((root / target_folder(target)).rglob("*.c"))


def check(root, package):
    """All findings, and notes that are no findings."""
    findings, notes = Findings(), []
    targets = {target_folder(target): target for target in package["targets"]}
    imported = {}
    for file in files_of(root):
        text = read(root / file)
        if text is None or file.name in ("LICENSE", "Package.resolved") or is_sample(file):
            continue
        check_text(root, file, text, findings)
        if file.suffix != ".swift" or len(file.parts) < 3:
            continue
        code = without_comments_and_strings(text)
        check_swift(file, text, code, findings)
        target = next((targets[folder] for folder in file.parents if folder in targets), None)
        if target is not None:
            found = check_imports(target, file, code, findings)
            imported.setdefault(target["name"], set()).update(found)
    for target in package["targets"]:
        if target["type"] != "system" and not is_c(root, target):
            check_settings(target, findings)
        for name in sorted(declared_dependencies(target) - imported.get(target["name"], set())):
            if target["name"] in imported:
                notes.append(f"note: {target['name']} declares {name} and does not import it")
    return findings, notes


def main():
    root = pathlib.Path(os.path.abspath(sys.argv[1]))
    findings, notes = check(root, json.load(sys.stdin))
    for note in notes:
        print(note, file=sys.stderr)
    return findings.report()


if __name__ == "__main__":
    sys.exit(main())
