"""Published notations of cells: DARTS genotypes in JSON or Python, and NAS-Bench-301's ConfigSpace configurations."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from spaces.cells import NUM_INPUTS, Cell, Edge
from spaces.notation import NotationReader
from spaces.shown import shown

GENOTYPE_KEYS = ("normal", "normal_concat", "reduce", "reduce_concat")
CELL_KINDS = ("normal", "reduce")
MAX_RANGE = 100  # limit on the length of a range: more states than any cell has
CONFIG_PREFIX = "NetworkSelectorDatasetInfo:darts:"


def read_cell(
    reader: NotationReader, genotype: Mapping[str, Any], name: str, operations: Sequence[str], num_nodes: int
) -> Cell:
    """Read a cell from the entries ``name``, a list of ``[operation, input]``, and ``name_concat`` of a DARTS genotype.

    Raises:
        ArchitectureError: the cell is invalid; the message names the pair, such as ``normal[3]``.
    """
    edges = reader.check_list(name, genotype[name], [NUM_INPUTS * num_nodes])
    pairs = [_read_edge(reader, f"{name}[{i}]", edge, operations, i) for i, edge in enumerate(edges)]
    place = f"{name}_concat"
    concat = reader.check_list(place, genotype[place], range(1, num_nodes + 1))
    states = range(NUM_INPUTS, NUM_INPUTS + num_nodes)
    parts = [states[reader.choice_index(f"{place}[{i}]", s, states)] for i, s in enumerate(concat)]
    if len(set(parts)) < len(parts):
        raise reader.error(f"different states in {place}", f"{concat}")
    return Cell(tuple(zip(pairs[::2], pairs[1::2], strict=True)), tuple(parts))


def _read_edge(reader: NotationReader, name: str, edge: Any, operations: Sequence[str], position: int) -> Edge:
    operation, source = reader.check_list(name, edge, [2])
    states = range(NUM_INPUTS + position // 2)
    reader.choice_index(f"{name}[0]", operation, operations)
    return operation, reader.choice_index(f"{name}[1]", source, states)


def spell_cell(name: str, cell: Cell) -> dict[str, Any]:
    """Return the entries ``name`` and ``name_concat`` of a DARTS genotype."""
    edges = [[operation, source] for node in cell.nodes for operation, source in node]
    return {name: edges, f"{name}_concat": list(cell.concat)}


def read_python_genotype(reader: NotationReader, notation: str) -> dict[str, Any]:
    """Read ``Genotype(normal=[('sep_conv_3x3', 0), …], normal_concat=range(2, 6), …)`` as printed in papers.

    Nothing is executed; only literals and ``range`` are accepted.
    """
    try:
        call = ast.parse(notation.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("not a call with only keyword arguments")
        found = {str(keyword.arg): _literal(keyword.value) for keyword in call.keywords}
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError) as error:
        wanted = f"Genotype({'=…, '.join(GENOTYPE_KEYS)}=…)"
        raise reader.error(wanted, f"{shown(notation)}, {error}") from error
    reader.check_keys(found, required=GENOTYPE_KEYS)
    return found


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        return list(range(*map(ast.literal_eval, node.args))[:MAX_RANGE])
    return _lists(ast.literal_eval(node))


def _lists(value: Any) -> Any:
    return [_lists(item) for item in value] if isinstance(value, tuple | list) else value


def is_config(value: object) -> bool:
    """Return whether a JSON value is a configuration of NAS-Bench-301's ConfigSpace."""
    return isinstance(value, dict) and any("edge_normal_" in key for key in value)


def config_to_genotype(reader: NotationReader, config: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
    """Return the genotype of a configuration, with ``init_channels`` and ``layers`` if it has them.

    Edges are numbered node by node, and each node names the two inputs that it uses, except node 2, whose inputs are
    always 0 and 1. Settings of training are ignored.

    Source: Zela et al., ICLR 2022; automl/nasbench301, representations.py.
    """
    own = {
        key.removeprefix(CONFIG_PREFIX): value
        for key, value in config.items()
        if key.startswith(CONFIG_PREFIX) or ":" not in key
    }
    genotype: dict[str, Any] = {}
    known = ["auxiliary", "drop_path_prob", "init_channels", "layers"]
    for kind in CELL_KINDS:
        genotype[kind] = []
        first_edge = 0
        for state in range(NUM_INPUTS, NUM_INPUTS + num_nodes):
            inputs_key = f"inputs_node_{kind}_{state}"
            sources = (0, 1) if state == NUM_INPUTS else _read_inputs(reader, inputs_key, own, state)
            keys = [f"edge_{kind}_{first_edge + source}" for source in sources]
            reader.check_keys({key: own[key] for key in keys if key in own}, required=keys)
            genotype[kind] += [[own[key], source] for key, source in zip(keys, sources, strict=True)]
            known += [inputs_key, *keys]
            first_edge += state
        genotype[f"{kind}_concat"] = list(range(NUM_INPUTS, NUM_INPUTS + num_nodes))
    reader.check_keys(own, required=(), optional=known)
    return genotype | {key: own[key] for key in ("init_channels", "layers") if key in own}


def _read_inputs(reader: NotationReader, key: str, config: Mapping[str, Any], state: int) -> tuple[int, int]:
    pairs = {f"{first}_{second}": (first, second) for second in range(state) for first in range(second)}
    found = config.get(key)
    reader.choice_index(key, found, list(pairs))
    return pairs[str(found)]
