"""The laws of the house that no linter knows: each yields what is wrong in one file.

What may import what is not here but in `walls`. Invariant: a law reads the file it is given and
nothing else, so that `test_laws` can show each one being broken.
"""

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.house.source import Source

LONGEST_FILE: Final = 399
LONGEST_FUNCTION: Final = 49
MOST_POSITIONAL: Final = 3
BORDERS: Final = ("src/diglot/http/streaming.py", "src/diglot/engines/llamacpp/child.py", "src/diglot/cli/main.py")
EMPTY_WORDS: Final = re.compile(
    r"(?:^|(?<=[a-z0-9_]))(?:manager|handler|util|utils|helper|helpers|base)$", re.IGNORECASE
)

_MUTABLE: Final = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS: Final = ("list", "dict", "set", "deque", "defaultdict", "OrderedDict", "Counter", "bytearray")
_ENVIRONMENT: Final = ("os.environ", "os.environb", "os.getenv", "os.putenv", "os.unsetenv")


def is_described(source: Source) -> Iterator[str]:
    """A module's docstring says what it is."""
    if not ast.get_docstring(source.tree):
        yield "1: the module has no docstring"


def is_short(source: Source) -> Iterator[str]:
    """A file can be read at one sitting, a function on one screen."""
    lines = source.text.count("\n")
    if lines > LONGEST_FILE:
        yield f"{lines}: more than {LONGEST_FILE} lines"
    for node in _functions(source):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > LONGEST_FUNCTION:
            yield f"{node.lineno}: {node.name} has {length} lines, more than {LONGEST_FUNCTION}"


def catches_what_it_knows(source: Source) -> Iterator[str]:
    """Only the three borders end every exception; to tidy up and raise it again is free to all."""
    if source.path in BORDERS:
        return
    for node in ast.walk(source.tree):
        match node:
            case ast.ExceptHandler(body=[*_, ast.Raise(exc=None)]):
                continue
            case ast.ExceptHandler(type=caught):
                wide = caught is None or _names_everything(caught)
            case ast.Call(func=func, args=args) if _name(func).endswith("suppress"):
                wide = any(_names_everything(arg) for arg in args)
            case _:
                continue
        if wide:
            yield f"{node.lineno}: catches everything, which only {', '.join(BORDERS)} may"


def leaves_the_environment(source: Source) -> Iterator[str]:
    """Only settings.py reads the environment, so that every setting is declared once."""
    if source.path == "src/diglot/settings.py":
        return
    yield from (f"{line}: imports {name}" for line, name in source.imports() if name in _ENVIRONMENT)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and _name(node) in _ENVIRONMENT:
            yield f"{node.lineno}: uses {_name(node)}"
        if isinstance(node, ast.keyword) and node.arg in {"envvar", "auto_envvar_prefix"}:
            yield f"{node.value.lineno}: an option reads the environment by {node.arg}"


def keeps_no_state(source: Source) -> Iterator[str]:
    """A module holds constants: tables are Final and filled where they stand, nothing is global."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Global):
            yield f"{node.lineno}: global {', '.join(node.names)}"
    for statement in source.tree.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or not statement.value:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        final = isinstance(statement, ast.AnnAssign) and "Final" in ast.unparse(statement.annotation)
        if "__all__" in map(_name, targets) or not _is_mutable(statement.value):
            continue
        if not final or _is_empty(statement.value):
            yield f"{statement.lineno}: {ast.unparse(targets[0])} is mutable state of a module"


def is_well_named(source: Source) -> Iterator[str]:
    """A name says what a thing does; Manager, Handler, Utils, Helper and Base say nothing."""
    defined = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = [(node.lineno, node.name) for node in ast.walk(source.tree) if isinstance(node, defined)]
    for line, name in [(1, source.path.rpartition("/")[2].removesuffix(".py")), *names]:
        if EMPTY_WORDS.search(name) and (name[0].isupper() or name.islower()):
            yield f"{line}: {name} ends in a word that says nothing"


def names_its_arguments(source: Source) -> Iterator[str]:
    """A call of more than three arguments says which is which."""
    for node in _functions(source):
        names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args) if arg.arg not in {"self", "cls"}]
        if len(names) > MOST_POSITIONAL and not node.name.startswith("__"):
            yield f"{node.lineno}: {node.name} takes {len(names)} arguments by position"


def bounds_what_it_keeps(source: Source) -> Iterator[str]:
    """No queue and no cache grows without end."""
    yield from (f"{line}: functools.cache has no bound" for line, name in source.imports() if name == "functools.cache")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and _name(node) == "functools.cache":
            yield f"{node.lineno}: functools.cache has no bound"
        if not isinstance(node, ast.Call):
            continue
        kind = _name(node.func).rpartition(".")[2]
        sizes = [*node.args, *(word.value for word in node.keywords if word.arg == "maxsize")]
        unbounded = not sizes or any(isinstance(size, ast.Constant) and not size.value for size in sizes)
        if kind == "SimpleQueue" or (kind in {"Queue", "LifoQueue", "PriorityQueue", "lru_cache"} and unbounded):
            yield f"{node.lineno}: {kind} without a maxsize"


def writes_plainly(source: Source) -> Iterator[str]:
    """Prose does without the em dash."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if "\N{EM DASH}" in line:
            yield f"{number}: an em dash"


def waits_for_state(source: Source) -> Iterator[str]:
    """A test waits for a state, never for a time; `sleep(0)` only lets others run."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(args=[ast.Constant(value=0)]):
                continue
            case ast.Call(func=func) if _name(func).rpartition(".")[2] == "sleep":
                yield f"{node.lineno}: sleeps"


def _functions(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _name(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def _names_everything(node: ast.expr) -> bool:
    each = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(_name(name).rpartition(".")[2] in {"Exception", "BaseException"} for name in each)


def _is_mutable(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return _name(value.func).rpartition(".")[2] in _CONTAINERS
    return isinstance(value, _MUTABLE)


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Call(args=inside, keywords=[]) | ast.List(elts=inside) | ast.Dict(values=inside):
            return not inside
        case _:
            return False
