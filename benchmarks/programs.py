"""Draw small random Python programs whose peak memory depends on which values they hold at the same time."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

NAMES = ("values", "table", "rows", "cache", "items", "result", "buffer", "seen", "found", "words")
MODULES = ("json", "decimal", "argparse", "asyncio", "dataclasses", "csv", "http.client", "unittest")


@dataclass(frozen=True)
class Statement:
    """An expression in ``n``, and the range of ``n``, which is lower if elements are larger."""

    expression: str
    smallest: int
    largest: int


STATEMENTS = (
    Statement("[0] * {n}", 10**4, 10**7),
    Statement("list(range({n}))", 10**4, 2 * 10**6),
    Statement("set(range({n}))", 10**4, 10**6),
    Statement("[str(i) for i in range({n})]", 10**4, 10**6),
    Statement("{{i: str(i) for i in range({n})}}", 10**4, 5 * 10**5),
    Statement("[[i] * 4 for i in range({n})]", 10**4, 5 * 10**5),
    Statement("sorted(range({n}), key=lambda i: -i)", 10**4, 10**6),
    Statement("'ab' * {n}", 10**5, 5 * 10**7),
    # These need next to no memory, whatever their size.
    Statement("sum(i * i for i in range({n}))", 10**4, 10**6),
    Statement("range({n})", 10**4, 10**8),
)


def draw_program(rng: np.random.Generator) -> str:
    """Draw a program: possibly an import, then one to three values that are kept, deleted, or local to a function."""
    imports = [f"import {name}" for name in rng.choice(MODULES, rng.integers(2), replace=False)]
    body: list[str] = []
    used: list[str] = []
    for name in rng.choice(NAMES, rng.integers(1, 4), replace=False):
        expression = _draw_expression(rng)
        kind = rng.random()
        if kind < 0.3:
            body += [f"def make_{name}():", f"    {name} = {expression}", "    return 1", "", f"print(make_{name}())"]
        elif kind < 0.5:
            body += [f"{name} = {expression}", f"del {name}"]
        else:
            body += [f"{name} = {expression}"]
            used.append(str(name))
    body += [f"print({', '.join(f'id({name})' for name in used)})"] if used else []
    return "\n".join([*imports, *([""] if imports else []), *body]) + "\n"


def rename(program: str, rng: np.random.Generator) -> str:
    """Rename the values of a program at random, as an augmentation, because names do not change its memory."""
    others = dict(zip(NAMES, rng.permutation(NAMES).tolist(), strict=True))
    return re.sub(rf"(?<![a-zA-Z])({'|'.join(NAMES)})(?![a-zA-Z])", lambda found: others[found[1]], program)


def _draw_expression(rng: np.random.Generator) -> str:
    statement = STATEMENTS[rng.integers(len(STATEMENTS))]
    size = 10 ** rng.uniform(np.log10(statement.smallest), np.log10(statement.largest))
    return statement.expression.format(n=int(float(f"{size:.1e}")))
