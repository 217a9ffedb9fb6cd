# SPDX-License-Identifier: Apache-2.0
"""Rewrites the annotations of all that the reference documents to the texts that the site shows.

autodoc evaluates annotations, which turns an alias such as ArrayLike into its ten members. It does not change texts.
"""

import builtins
import inspect
import sys

import reference_pages
from sphinx.pycode import ModuleAnalyzer
from type_names import linked


class Default:
    """A default that the site shows as a text."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def shown_default(value):
    """The default that the site shows: "..." for one that only its class has a name for, as <no value>."""
    return Default("...") if repr(value).startswith("<") else value


def with_links(signature, namespace):
    """A signature with linked names in its annotations."""

    def text(annotation):
        return linked(annotation, namespace) if isinstance(annotation, str) else annotation

    parameters = [each.replace(annotation=text(each.annotation)) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=text(signature.return_annotation))


def name_types_of_function(function):
    """Rewrites the annotations of a function and of its overloads."""
    if "__signature__" in vars(function):
        function.__signature__ = with_links(function.__signature__, vars(sys.modules[function.__module__]))
    function = inspect.unwrap(function)
    namespace = {**vars(builtins), **function.__globals__}
    texts = {name: text for name, text in function.__annotations__.items() if isinstance(text, str)}
    function.__annotations__ = {name: linked(text, namespace) for name, text in texts.items()}
    if function.__defaults__:
        function.__defaults__ = tuple(map(shown_default, function.__defaults__))
    if function.__kwdefaults__:
        function.__kwdefaults__ = {name: shown_default(value) for name, value in function.__kwdefaults__.items()}
    if function.__module__ not in sys.modules:
        return
    analyzer = ModuleAnalyzer.for_module(function.__module__)
    analyzer.analyze()
    overloads = analyzer.overloads.get(function.__qualname__, [])
    overloads[:] = [with_links(overload, namespace) for overload in overloads]


def name_types_of_fields(cls, namespace):
    """Rewrites the annotations in the body of a class."""
    fields = inspect.get_annotations(cls)
    if fields:
        texts = {name: getattr(text, "__forward_arg__", text) for name, text in fields.items()}  # of named tuples
        cls.__annotations__ = {name: linked(text, namespace) for name, text in texts.items() if isinstance(text, str)}


def functions_of(cls):
    """The functions of a class: methods, and getters of its properties."""
    for member in vars(cls).values():
        for attribute in ("__func__", "fget", "func"):
            member = getattr(member, attribute, None) or member
        if inspect.isfunction(member):
            yield member


def globals_of(functions):
    """The names that the modules of functions have."""
    return {name: value for each in functions for name, value in inspect.unwrap(each).__globals__.items()}


def name_types():
    """Rewrites the annotations of all that the reference documents."""
    documented = {id(home.value): home.value for home in reference_pages.homes().values()}
    functions = []
    for value in documented.values():
        if inspect.isfunction(value):
            functions.append(value)
        elif isinstance(value, type) and value.__module__.startswith(reference_pages.PACKAGE):
            found = list(functions_of(value))
            functions += found
            name_types_of_fields(value, {**vars(builtins), **globals_of(found)})
    for function in {id(inspect.unwrap(function)): function for function in functions}.values():
        name_types_of_function(function)
