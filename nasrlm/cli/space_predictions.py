"""What a predictor has learned nothing about, in words for people."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from converters import to_measured_text
from nasrlm.cli.output import some, warn
from nasrlm.named_spaces import TEXT_SPACE, known_as
from nasrlm.predictor import Predictor
from nasrlm.text.network import read_written_out
from spaces import UnknownSpaceError, get_space

DRAWN = 64  # networks of a space, in a second; no trait of 300 others was new, in any of seventeen spaces
OPERATOR = re.compile(r"= (?!block\.)([\w.]+) [<(]")
INPUT = re.compile(r"network \((\w+\[[^]]*\])")
OUTPUT = re.compile(r"=> \((\w+\[[^]]*\])")


def warn_of_guesses(predictor: Predictor, spaces: Iterable[str], objectives: Sequence[str] = ()) -> None:
    """One line on stderr of ``guesses``, if there are any."""
    if words := guesses(predictor, spaces, objectives):
        warn(words)


def guesses(predictor: Predictor, spaces: Iterable[str], objectives: Sequence[str] = ()) -> str:
    """Say in a sentence which predictions would be guesses; "" if none would be.

    They are guesses for networks of a space that the checkpoint has seen no network of, for networks whose space is not
    named, and of objectives that it has learned from networks of other spaces alone. An objective that was added by
    adapting counts as learned from the spaces that were noted then, or from any if none was. Objectives that the
    checkpoint does not know at all are not spoken of: others refuse them.

    Args:
        predictor: asked for the predictions.
        spaces: of the networks; "" where none is named.
        objectives: to predict; all that are known if empty.
    """
    checkpoint = predictor.checkpoint
    known, added = checkpoint.spaces, [name for name in objectives if name in checkpoint.added]
    if not known:
        return ""
    taught = {  # of the added ones, those that are no guesses
        space: [name for name in added if checkpoint.was_taught(name, space)]
        for space in sorted({known_as(space or TEXT_SPACE, known) for space in spaces})
    }
    taught = {space: names for space, names in taught.items() if not objectives or len(names) < len(objectives)}
    words = _of_other_spaces({space: names for space, names in taught.items() if space not in known})
    if words:
        sources = [(name in checkpoint.added and checkpoint.taught_spaces(name)) or known for name in objectives]
        words.insert(0, f"the checkpoint learned from {', '.join(dict.fromkeys(chain(*sources or [known])))}")
    for space in [space for space in taught if space in known]:
        own = {*predictor.objectives_of(space)} - {*added} | {*taught[space]}
        if guessed := [name for name in objectives if name in predictor.objectives and name not in own]:
            words.append(f"{some(guessed)} of {space} it can only guess, from other spaces")
    return f"{'; '.join(words)}." if words else ""


def _of_other_spaces(taught: Mapping[str, Sequence[str]]) -> list[str]:
    """Say of which spaces all is a guess but for the objectives that the checkpoint was taught for each."""
    buts = {space: f", but for {some(names)}" if names else "" for space, names in taught.items()}
    alike = defaultdict[str, list[str]](list)
    for space in [space for space in buts if space != TEXT_SPACE]:
        alike[buts[space]].append(space)
    words = [f"of {', '.join(others)} it can only guess{but}" for but, others in alike.items()]
    if TEXT_SPACE in buts:
        unlike = f"for a network unlike these it can only guess{buts[TEXT_SPACE]}"
        words.append(f"{unlike} (if yours is from one of them, name it with --space)")
    return words


def warn_of_strangers(names: Sequence[str], texts: Sequence[str], space: str) -> None:
    """One line on stderr of each text that is no network, or one with an operator, or an output, that no network drawn
    from its space has; or without the blocks as measured, which all of a space have.
    """
    try:
        named = get_space(space)
    except UnknownSpaceError:
        return  # one of texts alone
    rng = np.random.default_rng(0)
    known = set().union(*(_traits(to_measured_text(named, named.sample(rng))) for _ in range(DRAWN)))
    for name, text in zip(names, texts, strict=True):
        traits = _traits(text)
        if not traits:
            warn(f"{name}: expected a network of {space}, got no ONNX text: what is predicted is a guess.")
        elif strange := sorted(traits - known):
            warn(
                f"{name}: expected a network of {space}, got {some(strange)}, which none of {DRAWN} drawn from it "
                "has: what is predicted is a guess."
            )
        elif named.runs_lost_operations and not any(called.is_executed for called in read_written_out(text)):
            warn(
                f"{name}: expected the operations too that change nothing, with which networks of {space} were "
                "measured, got a file that has lost them. The notation in its place is predicted better."
            )


def warn_of_inputs(architectures: Sequence[str], texts: Sequence[str], spaces: Sequence[str]) -> None:
    """Warn of architectures with inputs unlike those that their space draws, as FBNet's for ImageNet; one line a space.

    Args:
        architectures: N notations; empty where there is none.
        texts: of each.
        spaces: of each.
    """
    for space in dict.fromkeys(spaces):
        try:
            named = get_space(space)
        except UnknownSpaceError:
            continue  # one of texts alone
        given = zip(architectures, texts, spaces, strict=True)
        own = [(name, _input(text)) for name, text, of in given if name and of == space]
        known = _input(to_measured_text(named, named.sample(np.random.default_rng(0))))
        strange = {name: x for name, x in own if x not in ("", known) and not named.is_drawn(named.parse(name))}
        if strange:
            warn(
                f"{some(list(strange))}: expected an input as networks drawn from {space} have, such as {known}, got "
                f"{some(sorted(set(strange.values())))}: what is predicted may be a guess."
            )


def _traits(onnx_text: str) -> set[str]:
    """Operators, and the type of the output."""
    return {*OPERATOR.findall(onnx_text), *OUTPUT.findall(onnx_text)}


def _input(onnx_text: str) -> str:
    """Type and shape of a network's input; "" of other texts."""
    found = INPUT.search(onnx_text)
    return found[1] if found else ""
