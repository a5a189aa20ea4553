"""Bad input of train, adapt, teach and search, by name: the words of a command, and what its one line says."""

from tests.nasrlm.cli.test_cli import GOALS, SPACE
from tests.nasrlm.workplace import MODEL

SEARCH = ("search", *SPACE, *MODEL, "--trials", 4, "--out", "study", "--objectives")
OF_THE_MODEL = (
    ("--no-gate",),
    ("--gate",),
    ("--risk", 0.1),
    ("--batch", 5),
    ("--generations", 9),
    ("--adapt-every", 0),
    ("--samples", 9),
    ("--joint",),
    ("--exhaustive",),
)
TABLE = ("--evaluator", "table:table.csv")
GUIDED = "--acquisition hypervolume or median"
IDLE = (
    (
        (),
        (("--acquisition", "median"), *OF_THE_MODEL),
        "--evaluator table:PATH, module:function or measure with it, got surrogate.",
    ),
    ((*TABLE, "--acquisition", "none"), OF_THE_MODEL, f"{GUIDED} with it, got none."),
    (
        (*TABLE, "--acquisition", "none"),
        (("--checkpoint", "nonexistent"),),
        f"{GUIDED}, or --evaluator measure, with it, got neither.",
    ),
    (("--evaluator", "measure", "--acquisition", "none"), (("--samples", 9),), f"{GUIDED} with it, got none."),
    (
        (*TABLE, "--acquisition", "median"),
        (("--samples", 9), ("--joint",)),
        "--acquisition hypervolume with it, got median.",
    ),
    (TABLE, (("--on-error", "skip"),), "--evaluator module:function with it, got table:table.csv."),
    (
        (*TABLE, "--exhaustive"),
        (("--engine", "pymoo"), ("--sampler", "tpe"), ("--generations", 9)),
        "no --exhaustive with it, got it.",
    ),
)
MISTAKES_OF_RUNS = {
    "a risk of nothing": (
        (*SEARCH, GOALS, "--evaluator", "table:table.csv", "--risk", "depth@onnx=.1"),
        "gate: expected risks of accuracy@cifar10, latency_ms@raspi4, got depth@onnx.",
    ),
    "a lesson over its labels": (
        ("teach", "--table", "table.csv", "--out", "table.csv"),
        "table.csv: expected an output file other than the input",
    ),
    "a lesson that cannot be written": (
        ("teach", "--table", "none.csv", "--out", "file/x.csv"),
        "file: expected a folder that can be written, got Not a directory. Choose another.",
    ),
    "an evaluator that exits": (
        (*SEARCH, GOALS, "--evaluator", "own_networks:exit_", "--generations", 1),
        "evaluator own_networks:exit_: expected a result for |",
    ),
    "an evaluator that is cancelled": (
        (*SEARCH, GOALS, "--evaluator", "own_networks:cancelled", "--generations", 1),
        "evaluator own_networks:cancelled: expected a result for |",
    ),
    "another split": (
        ("train", "--config", "resplit.yaml"),
        "column split: expected train, valid, test or an empty value",
    ),
    "an evaluator that fails": (
        (*SEARCH, GOALS, "--evaluator", "own_networks:fail", "--generations", 1),
        "evaluator own_networks:fail: expected a result for |",
    ),
    "no config": (("train", "--config", "none.yaml"), "none.yaml: expected a YAML file, got No such file"),
    "no recipe": (
        ("train", "--config", "nasbench2"),
        "--config: expected a YAML file or a recipe, counts, devices_held_out, encoders, labels, nasbench201, ",
    ),
    "unknown key": (("train", "--config", "misspelt.yaml"), "misspelt.yaml: expected a known key, got epoch."),
    "unwritable run": (
        ("train", "--config", "good.yaml", "--out", "file/run"),
        "file/run: expected a folder that can be written",  # before anything is converted
    ),
    "no goal": ((*SEARCH, "accuracy@cifar10"), "goal: expected max:objective or min:objective"),
    "unknown goal": ((*SEARCH, "max:accuracy@cifar1"), "Did you mean accuracy@cifar10?"),
    "several without effect": (
        (*SEARCH, GOALS, "--acquisition", "median", "--no-gate", "--batch", 5),
        "--acquisition, --no-gate, --batch: expected --evaluator table:PATH, module:function or measure with them, "
        "got surrogate. They have no effect: leave them out.",
    ),
    **{
        f"{option[0]} beside {beside}": (
            ("search", *SPACE, "--trials", 4, "--out", "study", "--objectives", GOALS, *beside, *option),
            f"{option[0]}: expected {needed} It has no effect: leave it out.",
        )
        for beside, options, needed in IDLE
        for option in options
    },
    "evaluator without its kind": (
        (*SEARCH, GOALS, "--evaluator", "labels.parquet"),
        "measure, got 'labels.parquet'. Write table:labels.parquet.",
    ),
    "unknown evaluator": ((*SEARCH, GOALS, "--evaluator", "oracle"), "--evaluator: expected surrogate, table:PATH"),
    "unwritable study": (("search", *SPACE, *MODEL, "--objectives", GOALS, "--out", "file/study"), "file/study"),
    "infinite label": (
        (
            "adapt",
            *MODEL,
            "--table",
            "infinite.csv",
            "--objectives",
            "latency_ms@unheard",
            "--samples",
            2,
            "--out",
            "x",
        ),
        "infinite.csv: expected empty values or finite numbers in column latency_ms@unheard, got inf in row 1.",
    ),
    "table without a space": (
        (
            "adapt",
            *MODEL,
            "--table",
            "spaceless.csv",
            "--objectives",
            "latency_ms@unheard",
            "--samples",
            2,
            "--out",
            "x",
        ),
        "spaceless.csv: expected a column space, got none.",
    ),
    "key that is no word": (("train", "--config", "numbered.yaml"), "numbered.yaml: expected text as keys, got 3."),
    "adapted to a file": (
        ("adapt", *MODEL, "--table", "table.csv", "--objectives", "latency_ms@unheard", "--out", "file"),
        "file: expected a folder for the checkpoint, got a file",
    ),
    "adapted where nothing can be written": (
        ("adapt", *MODEL, "--table", "table.csv", "--objectives", "latency_ms@unheard", "--out", "/proc/none/new"),
        "/proc/none: expected a folder that can be written, got",
    ),
    "trained where one is": (
        ("train", "--config", "good.yaml", "--out", "occupied"),
        "occupied/checkpoint: expected a folder for the checkpoint, got a file",  # before anything is converted
    ),
    "labels beyond 32 bits": (
        ("adapt", *MODEL, "--table", "huge.csv", "--objectives", "delta@huge", "--samples", "2", "--out", "huge"),
        "adapt: expected labels of delta@huge up to 1e+30, got 1e+35",
    ),
    "no exponents": (("train", "--config", "exponents.yaml"), "max_exponent: expected more than min_exponent (2)"),
    "warm start without architectures": (
        (*SEARCH, GOALS, "--warm-start", "texts.csv"),
        "texts.csv: expected a column architecture",
    ),
    "a warm start of nothing": (
        (*SEARCH, GOALS, "--warm-start", "blank.txt"),
        "blank.txt: expected architectures of nasbench201 to start from, got none.",
    ),
    "a warm start with a bad line": (
        (*SEARCH, GOALS, "--warm-start", "lines.txt"),
        "lines.txt, line 2: nasbench201 notation: expected",
    ),
}
