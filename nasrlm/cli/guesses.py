"""Warn, in words, of predictions for networks that a predictor has not learned."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from converters import to_measured_text
from converters.tables.counts import COUNTS
from nasrlm.cli.options import space_or_none
from nasrlm.cli.output import some, warn
from nasrlm.named_spaces import TEXT_SPACE, known_as

if TYPE_CHECKING:
    from nasrlm.predictor import Predictor

DRAWN = 64  # networks drawn from a space, in a second; in all seventeen spaces, 300 more had no new trait
OPERATOR = re.compile(r"= (?!block\.)([\w.]+) [<(]")
INPUT = re.compile(r"network \((\w+\[[^]]*\])")
OUTPUT = re.compile(r"=> \((\w+\[[^]]*\])")


def warn_of_guesses(predictor: Predictor, spaces: Iterable[str], objectives: Sequence[str]) -> None:
    """Print ``guesses`` as one line on stderr, if there are any."""
    if words := guesses(predictor, spaces, objectives):
        warn(words)


def guesses(predictor: Predictor, spaces: Iterable[str], objectives: Sequence[str]) -> str:
    """Say in a sentence which predictions would be guesses; "" if none would be.

    Predictions are guesses for networks of a space from which the checkpoint has learned nothing, for networks whose
    space is not named, and for objectives that it has learned only from other spaces. An objective that was added by
    adapting counts as learned from the spaces that were recorded then, or from all if none was. Objectives that the
    checkpoint does not know at all are ignored here, because other functions refuse them.

    Args:
        predictor: makes the predictions.
        spaces: of the networks; "" if none is named.
        objectives: to predict; one or more.
    """
    checkpoint = predictor.checkpoint
    known, added = checkpoint.spaces, [name for name in objectives if name in checkpoint.added]
    if not known:
        return ""
    taught = {  # added objectives that are no guesses
        space: [name for name in added if checkpoint.was_taught(name, space)]
        for space in sorted({known_as(space or TEXT_SPACE, known) for space in spaces})
    }
    taught = {space: names for space, names in taught.items() if len(names) < len(objectives)}
    alike = defaultdict[tuple[str, ...], list[str]](list)
    for space in [space for space in taught if space not in known]:
        alike[tuple(taught[space])].append(space)
    words = []
    for names, unknown in alike.items():
        others = [name for name in objectives if name not in names]
        sources = chain(*((name in added and checkpoint.taught_spaces(name)) or known for name in others))
        words.append(_of_other_spaces(unknown, names, list(dict.fromkeys(sources))))
    for space in [space for space in taught if space in known]:
        own = {*predictor.objectives_of(space)} - {*added} | {*taught[space]}
        if guessed := [name for name in objectives if name in predictor.objectives and name not in own]:
            unreliable = f"predictions of {some(guessed)} for {space} may be unreliable"
            words.append(f"{unreliable}, because they were learned from other spaces")
    return f"{'; '.join(words)}." if words else ""


def _of_other_spaces(unknown: Sequence[str], names: Sequence[str], sources: Sequence[str]) -> str:
    """Say for which spaces all predictions are guesses except those of ``names``, and where the others come from."""
    spaces = [space for space in unknown if space != TEXT_SPACE]
    advice = ""
    if TEXT_SPACE in unknown:
        spaces.append("networks whose space is not named")
        advice = " (if yours is from one of these, name it)"
    exceptions, they = (f", except those of {some(names)}", "the others") if names else ("", "they")
    reason = f"because {they} were learned only from {', '.join(sources)}"
    return f"predictions for {', '.join(spaces)} may be unreliable{exceptions}, {reason}{advice}"


def warn_of_counts(objectives: Sequence[str]) -> None:
    """Print, as one line on stderr, which objectives are counts, of which predictions are only approximate."""
    if counts := [name for name in objectives if name in COUNTS]:
        warn(f"{some(counts)}: predicted here; `nasrlm stats` counts exactly.")


def warn_of_foreign_networks(names: Sequence[str], texts: Sequence[str], space: str) -> None:
    """Warn, with one line on stderr each, of texts that are no networks or unlike their space.

    A text is unlike its space if it has an operator or an output type that no network drawn from the space has.
    """
    if (named := space_or_none(space)) is None:
        return
    rng = np.random.default_rng(0)
    known = set().union(*(_traits(to_measured_text(named, named.sample(rng))) for _ in range(DRAWN)))
    for name, text in zip(names, texts, strict=True):
        traits = _traits(text)
        if not traits:
            warn(f"{name}: expected a network of {space}, got no ONNX text: predictions may be unreliable.")
        elif strange := sorted(traits - known):
            warn(
                f"{name}: expected a network of {space}, got {some(strange)}, which none of {DRAWN} drawn from it "
                "has: predictions may be unreliable."
            )


def warn_of_inputs(architectures: Sequence[str], texts: Sequence[str], spaces: Sequence[str]) -> None:
    """Warn, one line per space, of architectures whose inputs differ from the space's, such as FBNet's for ImageNet.

    Args:
        architectures: N notations; "" if there is none.
        texts: N texts.
        spaces: N spaces.
    """
    for space in dict.fromkeys(spaces):
        if (named := space_or_none(space)) is None:
            continue
        given = zip(architectures, texts, spaces, strict=True)
        own = [(name, _input(text)) for name, text, of in given if name and of == space]
        known = _input(to_measured_text(named, named.sample(np.random.default_rng(0))))
        strange = {name: x for name, x in own if x not in ("", known) and not named.is_drawn(named.parse(name))}
        if strange:
            warn(
                f"{some(list(strange))}: expected an input like those of networks drawn from {space}, such as {known}, "
                f"got {some(sorted(set(strange.values())))}: predictions may be unreliable."
            )


def _traits(onnx_text: str) -> set[str]:
    """Return the operators of a text's network, and the type of its output."""
    return {*OPERATOR.findall(onnx_text), *OUTPUT.findall(onnx_text)}


def _input(onnx_text: str) -> str:
    """Return type and shape of a network's input; "" for other texts."""
    found = INPUT.search(onnx_text)
    return found[1] if found else ""
