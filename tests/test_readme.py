"""What README and the pages of figures and commands name exists: files, targets, extras, verbs; their Python runs."""

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer.main

from nasrlm.cli import app
from nasrlm.cli.verbs import VERBS, load_verb

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = [ROOT / "docs" / name for name in ("measured.md", "command-line.md", "python.md")]
PAGES = README + "".join(page.read_text(encoding="utf-8") for page in DOCS)
OUTPUTS = {"demo/"}  # named in the README, made by its commands
FILE_SUFFIXES = {".py", ".md", ".txt", ".toml"}


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES, flags=re.MULTILINE | re.DOTALL)


def _inline_code() -> list[str]:
    prose = re.sub(r"^```.*?^```", "", PAGES, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


def _commands() -> list[list[str]]:
    """Every command, as words: the lines of its shell blocks and those in running text."""
    lines = [line for block in _blocks("sh") for line in block.replace("\\\n", " ").splitlines()]
    in_text = [code for code in _inline_code() if re.match(r"(make|nasrlm|pip) ", code)]
    return [words for line in [*lines, *in_text] if (words := shlex.split(line, comments=True))]


def _commands_of(program: str) -> list[list[str]]:
    return [words for words in _commands() if words[0] == program]


@cache
def _command_tree() -> Any:
    tree = typer.main.get_group(app)
    tree.commands = {name: load_verb(name) for name in VERBS}
    return tree


def unknown_words(words: list[str], command: Any) -> Iterator[str]:
    """Verbs and flags among ``words``, the words of one command line, that ``command`` does not have."""
    for word in words[1:]:
        if (verbs := getattr(command, "commands", None)) and not word.startswith("-"):
            if word not in verbs:
                yield word
                return
            command = verbs[word]
        elif re.match(r"--?[a-z]", word) and word.partition("=")[0] not in _flags(command):
            yield word


def _flags(command: Any) -> set[str]:
    flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    return flags | {"--help"}


def test_the_readme_opens_with_a_sentence_and_two_commands() -> None:
    sentence, block = README.split("\n\n")[:2]
    assert sentence.startswith("nasrlm ")
    assert sentence.count("\n") == 0
    assert re.findall(r"^make (\w+)", block, flags=re.MULTILINE) == ["demo", "test"]


def test_every_shell_command_is_one_we_know() -> None:
    assert {words[0] for words in _commands()} <= {"curl", "make", "nasrlm", "pip", "python"}


@pytest.mark.parametrize("words", _commands_of("python"), ids=shlex.join)
def test_scripts_exist(words: list[str]) -> None:
    path = f"{words[2].replace('.', '/')}.py" if words[1] == "-m" else words[1]
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("words", _commands_of("make"), ids=shlex.join)
def test_make_targets_exist(words: list[str]) -> None:
    assert [word for word in words[1:] if "=" not in word]  # a target, not the default alone
    dry_run = subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert dry_run.returncode == 0, dry_run.stderr


@pytest.mark.parametrize("words", _commands_of("nasrlm"), ids=shlex.join)
def test_verbs_and_flags_exist(words: list[str]) -> None:
    assert list(unknown_words(words, _command_tree())) == []


def test_a_flag_named_in_the_text_belongs_to_some_verb() -> None:
    known = {flag for command in _command_tree().commands.values() for flag in _flags(command)}
    assert {code.split()[0] for code in _inline_code() if code.startswith("--")} <= known


def test_the_check_finds_verbs_and_flags_that_do_not_exist() -> None:
    app = typer.Typer()
    inner = typer.Typer()
    app.add_typer(inner, name="import")

    @app.command()
    def sample(space: str, count: Annotated[int, typer.Option("--count", "-n")] = 1) -> None: ...

    @inner.command()
    def first(file: str) -> None: ...

    @inner.command()
    def second(file: str) -> None: ...

    tree = typer.main.get_command(app)
    assert list(unknown_words(["nasrlm", "sample", "S", "-n", "3", "--help"], tree)) == []
    assert list(unknown_words(["nasrlm", "import", "first", "FILE"], tree)) == []
    assert list(unknown_words(["nasrlm", "prophesy", "--space", "x"], tree)) == ["prophesy"]
    assert list(unknown_words(["nasrlm", "import", "third", "FILE"], tree)) == ["third"]
    assert list(unknown_words(["nasrlm", "sample", "--spice", "x", "--count=3"], tree)) == ["--spice"]


def _named_paths() -> list[str]:
    links = [target for target in re.findall(r"\]\(([^)\s]+)\)", PAGES) if "://" not in target]
    code = [
        name
        for name in _inline_code()
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)*/?", name) and ("/" in name or Path(name).suffix in FILE_SUFFIXES)
    ]
    return sorted({*links, *code} - OUTPUTS)


@pytest.mark.parametrize("name", _named_paths())
def test_files_exist(name: str) -> None:
    path = ROOT / name
    assert path.is_dir() if name.endswith("/") else path.is_file()


def test_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = README.partition("| extra |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == set(project["optional-dependencies"])
    assert {extra for words in _commands_of("pip") for extra in re.findall(r"\[(\w+)\]", shlex.join(words))} <= set(
        project["optional-dependencies"]
    )


def test_ci_runs_the_check_command_of_the_readme() -> None:
    assert "make check" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


@pytest.mark.parametrize("source", _blocks("python"))
def test_the_python_examples_run(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # an example that writes, writes here
    exec(compile(source, "README.md", "exec"), {"__name__": "__main__"})
