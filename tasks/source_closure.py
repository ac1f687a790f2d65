"""What a stage is made of: its modules, what they import, and nothing else.

Prefect's own source hash covers the text of one function. A stage here is a task
module, the programs it starts and everything first-party those import, so that a
changed constant deep in the model makes exactly the stages that use it run again.
Files are found and read, never imported: the orchestrator must not load JAX, and a
module that fails to import must still have a digest.
"""

import ast
import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import sys
import threading
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

FIRST_PARTY = frozenset({"deploy", "flows", "model", "tasks", "warehouse"})
NOT_INSTALLED = "not installed"

# Python 3.11 counts the depth of a syntax tree for all threads together and takes two
# that are made at once for a mistake (SystemError; CPython issue 106905).
_one_tree = threading.Lock()
TREES_AT_MOST = 20


class UnknownModule(LookupError):
    """A stage names a module of its own that does not exist."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceClosure:
    """The modules a stage depends on."""

    modules: tuple[tuple[str, str], ...]
    """First-party module name and the SHA-256 of its syntax tree, sorted."""

    distributions: tuple[tuple[str, str], ...]
    """Third-party distribution the modules import and its installed version, sorted."""

    @property
    def sha256(self) -> str:
        """Digest of the modules, as the view `current_calibration` computes it."""
        lines = (f"{name} {digest}" for name, digest in self.modules)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class _Analysis:
    tree_sha256: str
    imports: frozenset[str]


def source_closure(*names: str) -> SourceClosure:
    """Returns the transitive first-party imports of some modules, by syntax tree.

    Comments and layout change nothing; imports inside functions and under
    TYPE_CHECKING count. A module loaded by name at run time is invisible here and
    has to be among `names`.

    Args:
        names: Dotted module names. Their top-level packages count as first-party.

    Returns:
        Digests of the modules and versions of the distributions they import.

    Raises:
        UnknownModule: One of `names` has no source file.
    """
    first_party = FIRST_PARTY | {name.partition(".")[0] for name in names}
    for name in names:
        if _module_file(name) is None:
            raise UnknownModule(f"Module {name!r} has no source file to name it by.")
    digests: dict[str, str] = {}
    seen: set[str] = set()
    packages: set[str] = set()
    waiting = [parent for name in names for parent in _with_parents(name)]
    while waiting:
        name = waiting.pop()
        # Most names are imported by many modules, and to look for each is not free.
        if name in seen:
            continue
        seen.add(name)
        top = name.partition(".")[0]
        if top not in first_party:
            packages.add(top)
            continue
        file = _module_file(name)
        if file is None:
            continue
        analysis = _analyse(file.read_bytes(), name, file.name == "__init__.py")
        digests[name] = analysis.tree_sha256
        for imported in analysis.imports:
            waiting += _with_parents(imported)
    return SourceClosure(
        modules=tuple(sorted(digests.items())),
        distributions=tuple(sorted({d for p in packages for d in _distributions(p)})),
    )


def file_closure(file: Path) -> tuple[SourceClosure, tuple[str, ...]]:
    """Returns a Python file and what it imports from its own folder, by syntax tree.

    Args:
        file: A file outside of the packages of this project.

    Returns:
        Digests by path inside the folder, and versions of the distributions that all
        of them import; and the modules of this project among their imports.

    Raises:
        OSError: The file cannot be read.
        SyntaxError: A file is no Python.
    """
    folder = file.parent
    digests: dict[str, str] = {}
    packages: set[str] = set()
    ours: set[str] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        own = path.relative_to(folder).as_posix()
        if own in digests:
            continue
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        is_package = path.name == "__init__.py"
        name = module.removesuffix(".__init__")
        analysis = _analyse(path.read_bytes(), name, is_package)
        digests[own] = analysis.tree_sha256
        for imported in analysis.imports:
            beside = _files_beside(folder, imported)
            waiting += beside
            top = imported.partition(".")[0]
            if not beside and top not in FIRST_PARTY:
                packages.add(top)
            elif not beside and _module_file(imported) is not None:
                ours.add(imported)
    found = sorted({d for package in packages for d in _distributions(package)})
    own_files = tuple(sorted(digests.items()))
    closure = SourceClosure(modules=own_files, distributions=tuple(found))
    return closure, tuple(sorted(ours))


def _files_beside(folder: Path, module: str) -> list[Path]:
    """Returns the files in a folder that importing a module runs, parents included."""
    found = []
    for name in _with_parents(module):
        base = folder.joinpath(*name.split("."))
        for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
            if candidate.is_file():
                found.append(candidate)
                break
    return found


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _module_file(name: str) -> Path | None:
    """Returns a module's source file, found through its top-level package alone."""
    top, _, rest = name.partition(".")
    # A dotted name would make find_spec import the parents; a top-level one does not.
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:
        return None
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin and spec.origin != "built-in" else None
    for folder in spec.submodule_search_locations or ():
        base = Path(folder, *rest.split("."))
        for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
            if candidate.is_file():
                return candidate
    return None


def _tree(source: bytes) -> ast.Module:
    """Returns a syntax tree; libraries make some in threads of their own meanwhile."""
    for _ in range(TREES_AT_MOST):
        with _one_tree, suppress(SystemError):
            return ast.parse(source)
    return ast.parse(source)


@lru_cache(maxsize=1024)
def _analyse(source: bytes, name: str, is_package: bool) -> _Analysis:
    tree = _tree(source)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    package = name if is_package else name.rpartition(".")[0]
    imports: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            imports.add(base)
            # `from package import name`: the name may be a module of its own.
            imports |= {f"{base}.{alias.name}" for alias in node.names}
    return _Analysis(digest, frozenset(imports))


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return str(node.module)
    return importlib.util.resolve_name("." * node.level + (node.module or ""), package)


@cache
def _distributions(package: str) -> tuple[tuple[str, str], ...]:
    """Returns name and version of the distributions that hold a top-level package."""
    if package in sys.stdlib_module_names:
        return ()
    try:
        return ((package, importlib.metadata.version(package)),)
    except importlib.metadata.PackageNotFoundError:
        names = _packages_distributions().get(package, ())
    if not names:
        return ((package, NOT_INSTALLED),)
    return tuple((name, importlib.metadata.version(name)) for name in sorted(names))


@cache
def _packages_distributions() -> dict[str, tuple[str, ...]]:
    found = importlib.metadata.packages_distributions()
    return {package: tuple(set(names)) for package, names in found.items()}
