# SPDX-License-Identifier: Apache-2.0
"""Types in the signatures of the reference: by the names that the source gives them, each a link to its description."""

import ast
import functools
import importlib
import inspect

import reference_pages

# The module that defines each alias, and what it stands for.
ALIASES = {
    "ArrayLeaf": ("_base.leaf_types", "An array: a leaf of most trees."),
    "AxisNames": ("_spmd.axes", "The name of a mesh axis, or names of several."),
    "AxisTypeName": ("sharding", "An `AxisType` by its name."),
    "ColorMap": ("debug", "A function from numbers between 0 and 1 to colours, as matplotlib has them."),
    "Container": ("_base.leaf_types", "A container that Python has: the elements may be trees too."),
    "Flat": ("tree_util", "A leaf, or a container of leaves without further containers."),
    "IndexGroups": ("lax", "Indices along the axis, in groups that each run a collective of their own."),
    "IsLeaf": ("_tree.flatten", "A function that says of each part of a tree whether it is a leaf."),
    "JsonValue": ("doctor.report", "None, a bool, a number, a text, or a list or dict of these."),
    "KeyPath": ("_tree.keys", "The keys from the top of a tree to a leaf."),
    "Leaf": ("_base.leaf_types", "An array or a number."),
    "ModelLike": (
        "planner.shape.model_argument",
        "A model: a shape, or a text with its name, its id on the Hugging Face Hub or the path of its file.",
    ),
    "NestedNumbers": ("_base.leaf_types", "A number for an array without dimensions, else a list of lists of numbers."),
    "NodeData": ("_tree.treedef", "What a class says about its instances beside their children: the keys of a dict."),
    "Number": ("lax", "A number of Python or of NumPy."),
    "PyTree": (
        "_base.leaf_types",
        "A `Tree` that a function returns, or gives to one of yours. Type checkers accept all that you do with it.",
    ),
    "PythonNumber": ("_base.leaf_types", "A bool, an int, a float or a complex: the dtype of the array decides."),
    "Record": ("_base.leaf_types", "A dict of values by name; the description of the function has the names."),
    "Setting": ("config", "The value of an option."),
    "SpecTree": ("_spmd.specs", "A `PartitionSpec`, or a tree of them that is a prefix of the arguments."),
    "StrPath": ("checkpoint.folders", "A path of the file system."),
    "Target": ("_placement.target", "A place of data: None is the default device, a `PartitionSpec` needs `set_mesh`."),
    "TargetTree": ("_placement.target", "A target, or a tree of targets that is a prefix of the data."),
    "Tree": ("_base.leaf_types", "A leaf, or a container of any registered class."),
    "Value": ("checkpoint.manifest", "A leaf of a checkpoint other than an array."),
}

# Names of NumPy's typing module, whose values are unions of private classes.
NUMPY_TYPES = ("ArrayLike", "DTypeLike", "NDArray")
ANYTHING = ("Any", "typing.Any", "...")


@functools.cache
def documented_classes():
    """The path of each documented class, by its name."""
    return {home.name: home.path for home in reference_pages.homes().values() if isinstance(home.value, type)}


class LinkedNames(ast.NodeTransformer):
    """Replaces the names in an annotation by paths that Sphinx links and shows without their modules."""

    def __init__(self, namespace):
        self.namespace = namespace

    def path_of(self, dotted):
        """The path of a name in the source, or the name if there is no page for it."""
        name = dotted.rpartition(".")[2]
        if name in ALIASES:
            return f"~{name}"
        if name in NUMPY_TYPES:
            return f"~numpy.typing.{name}"
        try:
            value = eval(dotted, self.namespace)  # an expression of our own source
        except (NameError, AttributeError):  # imported for type checkers only, or in a stub
            if name in documented_classes():
                return f"~{documented_classes()[name]}"
            return f"~{dotted}" if "." in dotted else dotted
        if hasattr(value, "__args__"):  # an alias without a description
            return f"~{name}"
        if not isinstance(value, type) or value.__module__ == "builtins":
            return name
        own = f"{value.__module__}.{value.__qualname__}"
        return f"~{documented_classes().get(name, own) if own.startswith(reference_pages.PACKAGE) else own}"

    def visit_Name(self, node):
        return ast.Name(self.path_of(node.id))

    def visit_Attribute(self, node):
        return ast.Name(self.path_of(ast.unparse(node)))

    def visit_Subscript(self, node):
        """Leaves out parameters that say nothing, as in tuple[Any, ...]."""
        parameters = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if all(ast.unparse(parameter) in ANYTHING for parameter in parameters):
            return self.visit(node.value)
        if ast.unparse(node.value).endswith("Literal"):
            return ast.Subscript(self.visit(node.value), node.slice)
        return self.generic_visit(node)

    def visit_BinOp(self, node):
        """Leaves Any out of a union, which it swallows: it only tells type checkers not to ask for tests of None."""
        members = [member for member in (node.left, node.right) if ast.unparse(member) not in ANYTHING]
        return self.generic_visit(node) if len(members) == 2 else self.visit(members[0])

    def visit_Constant(self, node):
        return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node


def linked(annotation, namespace):
    """Returns the text of an annotation with linked names."""
    return ast.unparse(LinkedNames(namespace).visit(ast.parse(annotation, mode="eval").body))


def definition_of(name):
    """The text of an alias in its source."""
    module = importlib.import_module(f"{reference_pages.PACKAGE}.{ALIASES[name][0]}")
    for statement in ast.parse(inspect.getsource(module)).body:
        target = statement.target if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [None])[0]
        if isinstance(target, ast.Name) and target.id == name:
            return linked(ast.unparse(statement.value), vars(module))
    raise ValueError(f"type_names: {module.__name__} has no alias {name}; correct ALIASES in docs/type_names.py")


def page_text():
    """The page of the reference that describes the aliases."""
    parts = [
        reference_pages.heading("Types in signatures", "="),
        "Signatures name some types that are not classes. The other names are of this package, of Python, or of NumPy: "
        "``ArrayLike`` is all that ``np.asarray`` takes, ``DTypeLike`` all that ``np.dtype`` takes, and ``NDArray`` is "
        "an ndarray.\n",
    ]
    for name, (_, description) in ALIASES.items():
        definition = definition_of(name)
        option = "" if "typing.Any" in definition else f"   :canonical: {definition}\n"
        parts.append(f".. py:type:: {name}\n{option}\n   {description}\n")
    return "\n".join(parts)
