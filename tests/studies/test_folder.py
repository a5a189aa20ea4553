"""The folder of a study, and what is no such folder."""

from pathlib import Path

import pytest

from studies.folder import StudyError, read_study, write_json


def test_json_is_strict(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "study.json", {"hypervolume": float("nan")})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("config", ["[]", '{"options": []}'])
def test_a_study_with_another_config_is_told(config: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(f'{{"config": {config}}}')
    with pytest.raises(
        StudyError, match=r"study\.json: expected an object with a config and its options, got something"
    ):
        read_study(tmp_path)


@pytest.mark.parametrize("name", [".", "missing", "file"])
def test_what_is_no_studys_folder_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match=r"expected the folder of a study, got no study\.json"):
        read_study(tmp_path / name)
