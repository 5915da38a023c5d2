"""Repositories in several programming languages: their files, their code, and what their tools print.

All of it is boring on purpose: long, and full of paths, versions and numbers that nobody needs again. Facts are
put in between by the session.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec

_NOUNS = [
    "ingest",
    "ledger",
    "batch",
    "queue",
    "cursor",
    "tenant",
    "invoice",
    "shard",
    "router",
    "codec",
    "window",
    "retry",
    "audit",
    "schema",
    "cache",
    "lease",
]
_VERBS = [
    "load",
    "merge",
    "flush",
    "parse",
    "resolve",
    "split",
    "encode",
    "drain",
    "apply",
    "verify",
    "rotate",
    "collect",
    "expand",
]


class Project(msgspec.Struct, frozen=True):
    """One programming language: where files lie, and the commands that build and test."""

    folders: tuple[str, ...]
    ending: str
    manifest: str
    build: str
    test: str
    compiled: str
    passed: str
    broken: str
    total: str
    code: tuple[str, ...]


PROJECTS: Final = {
    "rust": Project(
        ("crates/core/src", "crates/store/src", "crates/cli/src"),
        ".rs",
        "Cargo.toml",
        "cargo build --workspace",
        "cargo test --workspace",
        "   Compiling {noun}-{verb} v{v}",
        "test {noun}::tests::{verb}_{noun2} ... ok",
        "test {noun}::tests::{verb}_{noun2} ... FAILED",
        "test result: {state}. {p} passed; {f} failed; 0 ignored; 0 measured; 0 filtered out; finished in {s}s",
        (
            "    let {noun} = self.{noun2}.{verb}(&ctx)?;",
            "pub fn {verb}_{noun}(input: &[u8]) -> Result<{Noun}> {{",
            "    }}",
            "    // {verb} the {noun} before the {noun2}",
            "use crate::{noun}::{Noun};",
            "        .map(|{noun}| {noun}.{verb}())",
        ),
    ),
    "python": Project(
        ("src/app", "src/app/services", "tests"),
        ".py",
        "pyproject.toml",
        "python -m build",
        "pytest -q",
        "Collecting {noun}-{verb}=={v}",
        "tests/test_{noun}.py::test_{verb}_{noun2} PASSED",
        "tests/test_{noun}.py::test_{verb}_{noun2} FAILED",
        "=========== {f} failed, {p} passed in {s}s ===========",
        (
            "    {noun} = self._{noun2}.{verb}(batch)",
            "def {verb}_{noun}({noun2}: {Noun}) -> None:",
            '    """{Verb} the {noun}."""',
            "from app.{noun} import {Noun}",
            "        if not {noun}:",
            "            continue",
        ),
    ),
    "go": Project(
        ("internal/server", "internal/store", "cmd/agent"),
        ".go",
        "go.mod",
        "go build ./...",
        "go test ./... -v",
        "go: downloading example.org/{noun}/{verb} v{v}",
        "--- PASS: Test{Verb}{Noun} (0.{n}s)",
        "--- FAIL: Test{Verb}{Noun} (0.{n}s)",
        "{go}\texample.org/agent/internal/{noun}\t{s}s",
        (
            "\t{noun}, err := s.{noun2}.{Verb}(ctx)",
            "func (s *{Noun}) {Verb}{Noun}(ctx context.Context) error {{",
            "\tif err != nil {{",
            "\t\treturn err",
            "\t}}",
            "// {Verb}{Noun} is called by the {noun2}.",
        ),
    ),
    "typescript": Project(
        ("packages/api/src", "packages/web/src/lib", "packages/api/test"),
        ".ts",
        "package.json",
        "pnpm run build",
        "pnpm vitest run",
        "npm info fetch {noun}-{verb}@{v} 200 {n}ms",
        " ✓ src/{noun}.test.ts > {verb}s the {noun2} {n}ms",
        " ✗ src/{noun}.test.ts > {verb}s the {noun2} {n}ms",
        "      Tests  {f} failed | {p} passed ({t})",
        (
            "  const {noun} = await this.{noun2}.{verb}(input);",
            "export function {verb}{Noun}(input: {Noun}): void {{",
            "  }}",
            "  // the {noun2} owns this {noun}",
            "import {{ {Noun} }} from './{noun}';",
        ),
    ),
    "java": Project(
        ("service/src/main/java/org/example", "service/src/test/java/org/example", "api/src/main/java/org/example"),
        ".java",
        "pom.xml",
        "mvn -B package",
        "mvn -B test",
        "[INFO] Downloaded from central: org/example/{noun}/{verb}/{v}/{noun}-{v}.jar ({n} kB)",
        "[INFO] Running org.example.{Noun}{Verb}Test",
        "[ERROR] {Noun}{Verb}Test.{verb}{Noun}:{n} wrong {noun2}",
        "[ERROR] Tests run: {t}, Failures: {f}, Errors: 0, Skipped: 0",
        (
            "        {Noun} {noun} = {noun2}.{verb}(context);",
            "    public void {verb}{Noun}({Noun} input) {{",
            "    }}",
            "        // {noun2} first",
            "import org.example.{noun}.{Noun};",
        ),
    ),
    "cpp": Project(
        ("src/engine", "src/net", "tests"),
        ".cc",
        "CMakeLists.txt",
        "cmake --build build",
        "ctest --test-dir build",
        "[{n}/512] Building CXX object src/CMakeFiles/{noun}.dir/{verb}_{noun2}.cc.o",
        "{n}/200 Test #{n}: {noun}.{verb}_{noun2} .......   Passed    0.{n} sec",
        "{n}/200 Test #{n}: {noun}.{verb}_{noun2} .......***Failed    0.{n} sec",
        "{pct}% tests passed, {f} tests failed out of {t}",
        (
            "  auto {noun} = {noun2}->{verb}(ctx);",
            "Status {Verb}{Noun}(const {Noun}& in) {{",
            "}}",
            "  // {verb} before {noun2}",
            '#include "{noun}/{verb}.h"',
        ),
    ),
}


class Names:
    """Random but repeatable names and boring lines of one project."""

    def __init__(self, rng: random.Random, project: Project) -> None:
        self.rng = rng
        self.project = project

    def fill(self, template: str) -> str:
        """Return a template with random names in it."""
        rng = self.rng
        noun, noun2, verb = rng.choice(_NOUNS), rng.choice(_NOUNS), rng.choice(_VERBS)
        return template.format(
            noun=noun, noun2=noun2, verb=verb, Noun=noun.title(), Verb=verb.title(),
            v=f"{rng.randrange(4)}.{rng.randrange(30)}.{rng.randrange(20)}", n=rng.randrange(1, 400),
        )  # fmt: skip

    def path(self) -> str:
        """Return the path of a source file."""
        rng = self.rng
        stem = f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}"
        return f"{rng.choice(self.project.folders)}/{stem}{rng.choice(['', '', '_v2', '_impl'])}{self.project.ending}"

    def code(self, lines: int) -> list[str]:
        """Return lines of code."""
        return [self.fill(self.rng.choice(self.project.code)) for _ in range(lines)]

    def compiled(self, lines: int) -> list[str]:
        """Return lines of a build."""
        return [self.fill(self.project.compiled) for _ in range(lines)]

    def tested(self, lines: int) -> list[str]:
        """Return lines of tests that passed."""
        return [self.fill(self.project.passed) for _ in range(lines)]

    def total(self, failed: int) -> str:
        """Return the last line of a test run."""
        rng = self.rng
        passed = rng.randrange(20, 400)
        return self.project.total.format(
            state="FAILED" if failed else "ok", go="FAIL" if failed else "ok", p=passed, f=failed, t=passed + failed,
            s=f"{rng.random() * 30:.2f}", pct=100 * passed // (passed + failed), noun=rng.choice(_NOUNS),
        )  # fmt: skip

    def listed(self, lines: int) -> list[str]:
        """Return lines of a listing."""
        rng = self.rng
        return [
            f"-rw-r--r-- 1 dev dev {rng.randrange(300, 90000):6} Mar {rng.randrange(1, 29):2} 1{rng.randrange(10)}:{rng.randrange(10, 60)} "
            f"{self.path().rpartition('/')[2]}"
            for _ in range(lines)
        ]

    def logged(self, lines: int) -> list[str]:
        """Return lines of a service's log."""
        rng = self.rng
        return [
            f"2026-03-1{rng.randrange(10)}T0{rng.randrange(10)}:{rng.randrange(10, 60)}:{rng.randrange(10, 60)}Z "
            f"{rng.choice(['INFO', 'INFO', 'DEBUG'])} {rng.choice(_NOUNS)}: {rng.choice(_VERBS)} done in {rng.randrange(2, 90)}ms"
            for _ in range(lines)
        ]

    def found(self, lines: int) -> list[str]:
        """Return lines of a search."""
        return [f"{self.path()}:{self.rng.randrange(3, 400)}:{self.code(1)[0]}" for _ in range(lines)]
