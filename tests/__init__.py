"""Tests as a package, so that they can share helpers: ``from tests.spaces.contract import ...``."""

import pytest

# Helpers assert too; unregistered, only files named test_*.py explain a failed assertion.
pytest.register_assert_rewrite("tests.spaces", "tests.converters", "tests.nasrlm", "tests.studies")
