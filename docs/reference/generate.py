"""Writes docs/reference/python.md from the docstrings of the installed package.

    python docs/reference/generate.py            writes the page
    python docs/reference/generate.py --check    fails where the page is not what it would write
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path
from typing import Any

import bornite

PAGE = Path(__file__).resolve().parent / "python.md"

SECTIONS = {
    "Models of tables": ["fit", "Model", "Distribution", "Anomaly", "Contribution"],
    "Files without loss": ["compress_file", "decompress_file"],
    "Circuits": ["Circuit", "Builder", "Layer", "Basis", "Domain", "Variable", "Marginal", "Squared"],
    "Environments and comparisons": ["Environments", "Univariate", "Overlap"],
    "Tensor networks": ["from_mps", "from_tree"],
    "Exceptions": [],
}

HEAD = """# The Python package

Everything that `import bornite` gives, with the docstrings that `help` shows; `bornite.sklearn` comes last. Made by
`python docs/reference/generate.py`; a test holds it against the package.
"""


def signature(thing: Any) -> str:
    """Names and defaults; the type stubs have the types."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(…)"
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=found.empty))


def doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "").strip()


def fenced(text: str) -> str:
    """Examples in fences, names in single quotes."""

    def block(part: str) -> str:
        if part.lstrip().startswith(">>>"):
            return f"```pycon\n{textwrap.dedent(part)}\n```"
        return part.replace("``", "`")

    return "\n\n".join(block(part) for part in text.split("\n\n"))


def members(cls: type) -> list[tuple[str, Any]]:
    """Public methods and properties with a docstring of their own: as they are written, or by name in compiled classes."""
    found = []
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        # scikit-learn puts methods of its own into classes.
        if doc(plain) and not name.endswith("_request"):
            found.append((name, plain))
    is_compiled = not any(inspect.isfunction(member) for member in vars(cls).values())
    return sorted(found, key=lambda pair: pair[0]) if is_compiled else found


def entry(name: str, thing: Any) -> str:
    if not inspect.isclass(thing):
        return f"### `{name}`\n\n```python\n{name}{signature(thing)}\n```\n\n{fenced(doc(thing))}\n"
    text = f"### `{name}`\n\n{fenced(doc(thing))}\n"
    for member_name, member in members(thing):
        is_call = callable(member)
        title = f"{name}.{member_name}{signature(member) if is_call else ''}"
        text += f"\n**`{title}`**\n\n{fenced(doc(member))}\n"
    return text


def page() -> str:
    listed = {name for names in SECTIONS.values() for name in names}
    errors = [n for n in bornite.__all__ if n not in listed and n.endswith("Error")]
    rest = [n for n in bornite.__all__ if n not in listed and n not in errors and n != "__version__"]
    if rest:
        raise SystemExit(f"no section has {', '.join(rest)}: name them in SECTIONS")
    text = HEAD
    for title, names in SECTIONS.items():
        text += f"\n## {title}\n"
        for name in names or errors:
            text += "\n" + entry(name, getattr(bornite, name))
    try:
        import bornite.sklearn as estimators
    except ImportError:
        raise SystemExit("scikit-learn is needed for its part of the page: pip install scikit-learn") from None
    text += f"\n## `bornite.sklearn`\n\n{fenced(doc(estimators))}\n"
    for name in estimators.__all__:
        text += "\n" + entry(name, getattr(estimators, name))
    return text


def main() -> None:
    made = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") != made:
            raise SystemExit(f"{PAGE.name} is not up to date: run python docs/reference/generate.py")
        return
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
