"""Models whose schema contains the docstrings of their fields, for OpenAPI and the reference pages.

Pydantic's ``use_attribute_docstrings`` parses the source of every model at import, which took a tenth of the time of a
short command. Here the source is parsed when a schema is generated.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Described(BaseModel):
    """A model whose schema describes each field."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in field_texts(cls).items():
            if name in properties:
                properties[name].setdefault("description", text)
        return schema


def field_texts(model: type[BaseModel]) -> dict[str, str]:
    """The docstring of each field, from the model or its nearest ancestor that has one."""
    texts: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if issubclass(kind, Described) and kind.__pydantic_generic_metadata__["origin"] is None:
            texts |= _texts_in(kind)
    return texts


def _texts_in(kind: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    texts: dict[str, str] = {}
    for statement, following in pairwise(body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts
