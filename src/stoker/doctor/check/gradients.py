"""Find out whether the gradients of a scaled loss go only to the optimizer that scaled it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.names import bindings, last_name

SCALED, UNSCALED = "get_scaled_loss", "get_unscaled_gradients"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def scaling_pair(module: SourceModule, call: ast.Call) -> tuple[ast.Call, ast.Call] | None:
    """Return a function's calls that scale the loss and unscale its gradients, if only the optimizer uses these."""
    function = module.find_enclosing(call, *_FUNCTIONS) or module.tree
    optimizer = _receiver(call)
    if isinstance(function, ast.Lambda) or optimizer is None:
        return None
    calls = [node for node in _own_nodes(function) if isinstance(node, ast.Call)]
    scaled = [node for node in calls if _is(node, optimizer, SCALED)]
    unscaled = [node for node in calls if _is(node, optimizer, UNSCALED)]
    if len(scaled) != 1 or len(unscaled) != 1 or not all(map(_is_plain_call, (scaled[0], unscaled[0]))):
        return None
    if _is_gradient_of(module, function, unscaled[0].args[0], scaled[0]) and _is_only_applied(
        module, function, unscaled[0], optimizer
    ):
        return scaled[0], unscaled[0]
    return None


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield a function's nodes, except those inside nested functions and classes."""
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def _receiver(call: ast.Call) -> str | None:
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else None


def _is(call: ast.Call, optimizer: str, *methods: str) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in methods and _receiver(call) == optimizer


def _is_plain_call(call: ast.Call) -> bool:
    return len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)


def bound_name(module: SourceModule, value: ast.AST) -> str | None:
    """Return the name to which an assignment binds this value, if it is the only one."""
    statement = module.parents.get(value)
    if isinstance(statement, ast.Assign) and statement.value is value and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _is_gradient_of(module: SourceModule, function: ast.AST, gradients: ast.expr, scaled: ast.Call) -> bool:
    """Return whether `gradients` is `tape.gradient(scaled, ...)`, or a name for it."""
    loss = bound_name(module, scaled)
    if loss is None:
        return False
    if isinstance(gradients, ast.Name):
        name = gradients.id
        made = [module.parents.get(node) for node in bindings(function, name)]
        values = [node.value for node in made if isinstance(node, ast.Assign) and len(node.targets) == 1]
        taken = [v for v in values if isinstance(v, ast.Call) and last_name(v.func) == "gradient"]
        # Apart from the tape, only the unscaling call itself may bind the name: `g = opt.get_unscaled_gradients(g)`.
        itself = [v for v in values if isinstance(v, ast.Call) and last_name(v.func) == UNSCALED]
        if len(taken) != 1 or len(made) != len(taken) + len(itself):
            return False
        gradients = taken[0]
    target = gradients.args[0] if isinstance(gradients, ast.Call) and gradients.args else None
    return (
        isinstance(target, ast.Name)
        and target.id == loss
        and last_name(gradients.func if isinstance(gradients, ast.Call) else gradients) == "gradient"
        and len(bindings(function, loss)) == 1
    )


def _is_only_applied(module: SourceModule, function: ast.AST, unscaled: ast.Call, optimizer: str) -> bool:
    """Return whether the unscaled gradients are used exactly once, by this optimizer's `apply_gradients`."""
    name = bound_name(module, unscaled)
    if name is None:
        return _is_applied(module, unscaled, optimizer)
    raw = unscaled.args[0]
    names = {name} | ({raw.id} if isinstance(raw, ast.Name) else set())
    uses = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
        and node.id in names
        and isinstance(node.ctx, ast.Load)
        and node is not raw
    ]
    return len(uses) == 1 and uses[0].id == name and _is_applied(module, uses[0], optimizer)


def _is_applied(module: SourceModule, node: ast.AST, optimizer: str) -> bool:
    around = module.parents.get(node)
    if isinstance(around, ast.Call) and last_name(around.func) == "zip" and around.args[0] is node:
        zipped, around = around, module.parents.get(around)
        return (
            isinstance(around, ast.Call)
            and _is(around, optimizer, "apply_gradients")
            and around.args[:1] == [zipped]
        )
    return isinstance(around, ast.Call) and _is(around, optimizer, "apply") and around.args[:1] == [node]
