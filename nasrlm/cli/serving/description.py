"""The page at /docs: /openapi.json in readable form. It loads nothing, so it works without internet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="font-family: sans-serif; max-width: 50em; margin: 2em auto; line-height: 1.4">
<h1>{title}</h1>
{parts}
<p>Machine-readable version: <a href="openapi.json">openapi.json</a>.</p>
</body>
</html>
"""


def described(openapi: Mapping[str, Any]) -> str:
    """Return HTML that lists every route with the fields of its request and response.

    Args:
        openapi: the document of the routes, as FastAPI makes it.
    """
    info = openapi["info"]
    parts = [f"<p>{escape(info['description'])}</p>"]
    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            parts += [f"<h2>{method.upper()} {escape(path)}</h2>", f"<p>{escape(route['description'])}</p>"]
            parts += _bodies(route, openapi["components"]["schemas"])
    return PAGE.format(title=escape(f"{info['title']} {info['version']}"), parts="\n".join(parts))


def _bodies(route: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """Return the bodies of a route's request and of its successful response."""
    for title, body in (("Request", route.get("requestBody")), ("Response", route["responses"]["200"])):
        if body is not None:
            yield f"<h3>{title}, JSON</h3>"
            yield from _fields(body["content"]["application/json"]["schema"], schemas)


def _fields(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """Return the fields of an object, including those of nested objects."""
    named = _object(schema, schemas)
    if named is None:
        return
    yield "<ul>"
    for name, field in named["properties"].items():
        default = f", {escape(str(field['default']))} if left out" if field.get("default") is not None else ""
        words = next((x["description"] for x in (field, *field.get("anyOf", ())) if "description" in x), "")
        about = f": {escape(words)}" if words else ""
        yield f"<li><code>{escape(name)}</code> ({escape(_kind(field))}{default}){about}"
        yield from _fields(field, schemas)
        yield "</li>"
    yield "</ul>"


def _object(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the object that a value is or that its lists and mappings contain; None for strings and numbers."""
    while "$ref" not in schema:
        inner = schema.get("items") or schema.get("additionalProperties")
        if not isinstance(inner, Mapping):
            return None
        schema = inner
    found: Mapping[str, Any] = schemas[schema["$ref"].rpartition("/")[2]]
    return found


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a field in words, such as ``list of string``."""
    if choices := [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]:
        return " or ".join(map(_kind, choices))
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    if isinstance(inner := schema.get("additionalProperties"), Mapping):
        return f"{_kind(inner)} by name"
    return str(schema.get("type", "object"))
