"""Broken files and texts: each converts, or ends in the error of its kind, which is one line that names the place."""

import re

import pytest
from hypothesis import HealthCheck, given, settings

from converters import OnnxModelError, OnnxTextError, model_to_onnx_text, to_model
from converters.text import parse
from tests.converters.broken import MODELS, broken_models, broken_texts, whole_model, whole_text

EXAMPLES, MANY = 40, 2000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("broken") / "model.onnx"


def reason(kind, read, given) -> str:
    """Why what is given is refused; nothing if it is not. Other errors than those of this kind go through."""
    try:
        read(given)
    except kind as e:
        return str(e)
    return ""


@pytest.mark.parametrize("name", MODELS)
def test_what_is_broken_was_whole(name, path):
    path.write_bytes(whole_model(name))
    assert "network (" in model_to_onnx_text(path)
    to_model(whole_text())


def check_models(path, examples):
    @settings(max_examples=examples, deadline=None, suppress_health_check=[*HealthCheck])
    @given(broken_models())
    def ends_well(content):
        path.write_bytes(content)
        message = reason(OnnxModelError, model_to_onnx_text, path)
        assert not message or re.match(rf"({re.escape(str(path))}|model): .*expected .*got", message)
        assert "\n" not in message

    ends_well()


def check_texts(examples):
    @settings(max_examples=examples, deadline=None, suppress_health_check=[*HealthCheck])
    @given(broken_texts())
    def ends_well(text):
        for read in (parse, to_model):
            message = reason(OnnxTextError, read, text)
            assert not message or message.startswith("ONNX text: expected ")
            assert "\n" not in message

    ends_well()


def test_broken_models_end_in_their_error(path):
    check_models(path, EXAMPLES)


def test_broken_texts_end_in_their_error():
    check_texts(EXAMPLES)


@pytest.mark.slow
def test_many_broken_models_end_in_their_error(path):
    check_models(path, MANY)


@pytest.mark.slow
def test_many_broken_texts_end_in_their_error():
    check_texts(MANY)


@pytest.mark.parametrize("name", MODELS)
def test_models_cut_off_end_in_their_error(name, path):
    content = whole_model(name)
    for length in range(0, len(content), len(content) // 40):
        path.write_bytes(content[:length])
        assert re.match(r".*expected .*got", reason(OnnxModelError, model_to_onnx_text, path))
