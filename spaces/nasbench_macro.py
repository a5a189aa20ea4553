"""NAS-Bench-Macro: 6,561 networks of eight layers with three choices of operation each.

Source:
    Su et al. 2021, "Prioritized Architecture Sampling with Monto-Carlo Tree Search"; xiusu/NAS-Bench-Macro 61a2bfc.
"""

from __future__ import annotations

from dataclasses import dataclass

from spaces.notation import checked_text
from spaces.shown import shown
from spaces.space import ArchitectureError, Genotype, SearchSpace
from spaces.stages import in_stages

OPERATIONS = ("id", "ir_3x3_t3", "ir_5x5_t6")  # ir: inverted residual, with kernel and expansion
LAYERS_PER_STAGE = (2, 3, 3)
NUM_LAYERS = sum(LAYERS_PER_STAGE)

_DIGITS = "012"  # the digits of OPERATIONS in the notation
_REMEDY = "See OPERATIONS in spaces/nasbench_macro.py."


@dataclass(frozen=True)
class Layers:
    """The operations of all layers.

    Attributes:
        operations: (8,) one of OPERATIONS for every layer.
    """

    operations: tuple[str, ...]

    def __post_init__(self) -> None:
        unknown = [position for position, name in enumerate(self.operations) if name not in OPERATIONS]
        if unknown or len(self.operations) != NUM_LAYERS:
            where = f"position {unknown[0]}" if unknown else f"{len(self.operations)} of them"
            raise ArchitectureError(
                f"nasbench_macro layers: expected {NUM_LAYERS} operations of {', '.join(OPERATIONS)}, "
                f"got {self.operations}, {where}. {_REMEDY}"
            )

    def stages(self) -> tuple[tuple[str, ...], ...]:
        """The operations of every stage; its first layer halves the resolution and doubles the channels."""
        return in_stages(self.operations, LAYERS_PER_STAGE)


class NASBenchMacro(SearchSpace[Layers]):
    """Eight layers in three stages; the notation has one digit for each layer.

    Attributes:
        input_shape: NCHW of one image.
        num_classes: width of the logits.

    Example:
        >>> space = NASBenchMacro()
        >>> space.decode((2, 0, 2, 0, 0, 2, 0, 1)).stages()
        (('ir_5x5_t6', 'id'), ('ir_5x5_t6', 'id', 'id'), ('ir_5x5_t6', 'id', 'ir_3x3_t3'))
        >>> space.format(space.parse("20200201"))
        '20200201'
    """

    name = "nasbench_macro"
    objectives = ("accuracy@cifar10",)
    gene_sizes = (len(OPERATIONS),) * NUM_LAYERS
    gene_help = _REMEDY
    input_shape = (1, 3, 32, 32)
    num_classes = 10

    def encode(self, architecture: Layers) -> Genotype:
        return tuple(OPERATIONS.index(operation) for operation in architecture.operations)

    def _build(self, genotype: Genotype) -> Layers:
        return Layers(tuple(OPERATIONS[gene] for gene in genotype))

    def parse(self, notation: str) -> Layers:
        unknown = [position for position, digit in enumerate(checked_text(self.name, notation)) if digit not in _DIGITS]
        if unknown or len(notation) != NUM_LAYERS:
            where = f"position {unknown[0]}" if unknown else f"{len(notation)} of them"
            raise ArchitectureError(
                f"nasbench_macro notation: expected {NUM_LAYERS} digits of {_DIGITS}, got {shown(notation)}, {where}. "
                f"{_REMEDY}"
            )
        return Layers(tuple(OPERATIONS[_DIGITS.index(digit)] for digit in notation))

    def format(self, architecture: Layers) -> str:
        return "".join(_DIGITS[gene] for gene in self.encode(architecture))

    def architecture_key(self, architecture: Layers) -> str:
        """Return a key that is equal if networks differ only in the positions of identities; there are 3,969 keys.

        An ``id`` in the first layer of a stage changes the shape, so it is a convolution and no identity.
        """
        stages = ((first, *[name for name in others if name != "id"]) for first, *others in architecture.stages())
        return "; ".join(" ".join(stage) for stage in stages)
