"""Guess from names where nothing else is known: `model(x)` gives a tensor, `train_ds` is a pipeline.

Guesses are used only in files that import TensorFlow or Keras, and only if the analysis knows nothing better.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from stoker.doctor.check.source import functions, loops, reads
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import Call
from stoker.doctor.check.source.names import last_name
from stoker.doctor.check.source.values import UNKNOWN, Array, Dataset, Func, Py, Seq, Tensor, Thing, Value

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_MODEL = re.compile(
    r"(^|_)(model|net|network|generator|discriminator|gen|disc|encoder|decoder|actor|critic|classifier|vae|gan"
    r"|autoencoder|transformer|unet|resnet|policy_net|q_net|backbone|student|teacher)(\d*)($|_)"
)
_LOSS = re.compile(
    r"(^|_)(loss|losses|criterion|mse|cross_entropy|crossentropy|elbo)(_|$)|loss_?(fn|func|function|object|obj)$"
)
_OPTIMIZER = re.compile(r"(^|_)(optimizer|optimiser|opt|optim)(\d*)($|_)")
_METRIC = re.compile(r"(^|_)(metric|acc|accuracy|auc|mean|loss|precision|recall|tracker)(\d*)($|_)")
_DATASET = re.compile(r"(^|_)(ds|dataset|datasets)(\d*)($|_)|^(train|val|valid|test)_?(ds|data|set|dataset)$")
_STEP = re.compile(
    r"(^|_)(train|training|test|eval|update|optimize|learn)_?(step|batch|op|fn)|(^|_)step_fn$|^step$"
)
# Names of functions that make a whole pass over the data, wherever they are called.
_PASS = re.compile(
    r"(^|_)(train|run|fit|do|one|eval|evaluate|valid|validate|test|single)(_\w+)?_epoch($|_)"
    r"|^epoch_(pass|loop|train|run)$"
)
# Names of functions that make one if the loop around them counts epochs.
_PASS_OF_AN_EPOCH = re.compile(r"^(train|run|fit|learn|evaluate|validate|optimi[sz]e|play|rollout)($|_)")
_NOT_A_CALL = re.compile(
    r"^(build|make|get|create|load|compile|save|init|parse|log|print|plot|write|add|set)_"
)
_NUMBER = re.compile(
    r"(^|_)(total|num|n|max|min|steps?|epochs?|count|size|len|length|rate|decay|lr|alpha|beta|gamma|eps|epsilon)($|_)"
)
# Names of simulators: their `step` advances a simulated world and trains nothing.
_SIMULATED = re.compile(r"(^|_)(envs?|environment|e|gym|game|sim|simulator|world)(\d*)($|_)")
_RUNS = frozenset({"run", "experimental_run_v2"})
_LOSS_SCALING = ("get_scaled_loss", "get_unscaled_gradients")
_PREDICTORS = ("sklearn", "xgboost", "lightgbm", "catboost", "torch", "statsmodels")
# The attributes of a model or layer that hold its variables.
VARIABLES = frozenset(
    {
        "trainable_variables",
        "trainable_weights",
        "variables",
        "weights",
        "non_trainable_variables",
        "non_trainable_weights",
    }
)


def parameter(m: Machine, argument: ast.arg) -> Value:
    """Guess the value of a parameter for which no call passes one."""
    annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    if annotation:
        known = _read_annotation(annotation)
        if known is not None:
            return known
    if not m.frame.module.uses_tensors:
        return UNKNOWN
    name = argument.arg.lower()
    if _OPTIMIZER.search(name):
        return Thing("optimizer", "keras.optimizers.Optimizer")
    if _DATASET.search(name):
        return Dataset(source="?", prefetched=True)
    return UNKNOWN


_ANNOTATIONS = (
    (re.compile(r"\b(tf|tensorflow)\.Tensor\b|^Tensor\b|tf\.Variable"), lambda: Tensor()),
    (re.compile(r"\btf\.data\.Dataset\b"), lambda: Dataset(source="?", prefetched=True)),
    (re.compile(r"\bnp\.ndarray\b|\bnumpy\.ndarray\b|NDArray"), lambda: Array()),
    (re.compile(r"keras\.Model\b|keras\.Sequential\b"), lambda: Thing("model", "keras.Model")),
    (re.compile(r"keras\.optimizers\."), lambda: Thing("optimizer", "keras.optimizers.Optimizer")),
)
_PLAIN = {"int": "int", "float": "float", "str": "str", "bool": "bool"}


def _read_annotation(annotation: str) -> Value | None:
    if annotation in _PLAIN:
        return Py(_PLAIN[annotation])
    for pattern, make in _ANNOTATIONS:
        if pattern.search(annotation):
            return make()
    return None


def guess_iterable(m: Machine, node: ast.expr) -> Value:
    """Guess what a loop walks over: a pipeline, if the name of the unknown iterable says so."""
    if m.frame.module.uses_tensors and _DATASET.search(last_name(node).lower()):
        return Dataset(source="?", element=Tensor(host=True), prefetched=True)
    return UNKNOWN


def names_count(node: ast.expr) -> bool:
    """Return whether a name says that it holds a plain number: `total_steps`, `decay`, `lr`."""
    return bool(_NUMBER.search(last_name(node).lower()))


def binds_model(loop: ast.AST) -> bool:
    """Return whether a loop's body binds the result of a call to a name that suggests a model."""
    assigned = (n for n in ast.walk(loop) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call))
    return any(_MODEL.search(last_name(target).lower()) for node in assigned for target in node.targets)


def attribute(m: Machine, node: ast.Attribute) -> Value:
    """Guess the value of an attribute of an unknown object."""
    if not m.frame.module.uses_tensors:
        return UNKNOWN
    if node.attr in VARIABLES:
        return Seq("list", element=Tensor(variable=True))
    if node.attr in ("iterations", "learning_rate", "lr") and _OPTIMIZER.search(
        last_name(node.value).lower()
    ):
        return Tensor(variable=True)
    if node.attr == "optimizer" and _MODEL.search(last_name(node.value).lower()):
        return Thing("optimizer", "keras.optimizers.Optimizer")
    return UNKNOWN


def _follow_passed_functions(m: Machine, arguments: Arguments) -> None:
    """Follow the functions that are passed to an unknown call inside a graph: they can only be called in that graph."""
    if not m.frame.graph:
        return
    for value in arguments.values:
        if isinstance(value, Func):
            names = functions.unknown_names(m, value)
            functions.follow(m, value, names, graph=True, traced=m.frame.traced)


def call(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    """Guess the result and the effects of an unknown call."""
    m.note("?")
    _follow_passed_functions(m, arguments)
    if not m.frame.module.uses_tensors:
        return UNKNOWN
    name = last_name(node.func).lower()
    plain_class = last_name(node.func)[:1].isupper()
    if plain_class or _NOT_A_CALL.search(name):
        return UNKNOWN
    if is_pass(m, name):
        m.steps_inside()
        return UNKNOWN
    if _STEP.search(name):
        m.work(strong=True)
        # A train step returns a loss or metrics, which the host has not read yet.
        return Tensor() if name.endswith("_step") and isinstance(node.func, ast.Name) else UNKNOWN
    if _MODEL.search(name) and arguments.positional:
        return _call_model(m, node, arguments)
    if (_LOSS.search(name) or name.endswith("loss")) and len(arguments.positional) >= 2:
        m.work(strong=False)
        return Tensor()
    return UNKNOWN


def is_pass(m: Machine, name: str) -> bool:
    """Return whether the name of an unknown function says that it takes many steps."""
    if _STEP.search(name):
        return False
    epochs = bool(m.loops) and loops.counts_epochs(m.loops[-1].node)
    return bool(_PASS.search(name) or (epochs and _PASS_OF_AN_EPOCH.search(name)))


def _call_model(m: Machine, node: ast.Call, arguments: Arguments) -> Value:
    from stoker.doctor.check.source import classes

    m.work(strong=True)
    classes.feed(m, node, arguments, "is passed to a model")
    return Tensor()


def method(m: Machine, name: str, receiver: ast.expr, node: ast.Call, arguments: Arguments) -> Value:
    """Guess the result and the effects of a method call on an unknown object."""
    m.note("?")
    module = m.frame.module
    if name in reads.SINKS and name != "write":
        reads.note_arguments(m, arguments, "is shown or stored by a progress bar or log")
    owner = last_name(receiver)
    if name in _RUNS and "strategy" in owner.lower() and arguments.positional:
        from stoker.doctor.check.source import things

        return things.method(m, Thing("strategy", "?"), name, node, arguments)
    _follow_passed_functions(m, arguments)
    if m.frame.hot:
        m.emit(Call(m.at(node), f"?.{name}", node))
    if name in reads.LOGGING and re.search(r"log", owner, re.IGNORECASE):
        reads.note_arguments(m, arguments, "is logged")
    if not module.uses_tensors:
        return UNKNOWN
    if name == "numpy" and not arguments.positional and not module.imports_any("torch"):
        reads.read(m, node, Tensor(), "is read with .numpy()")
        return Array()
    return _call_like_keras(m, name, owner.lower(), node, arguments)


def _call_like_keras(m: Machine, name: str, owner: str, node: ast.Call, arguments: Arguments) -> Value:
    from stoker.doctor.check.source import pipelines, things

    if is_pass(m, name.lower()) and not _MODEL.search(owner):
        m.steps_inside()
        return UNKNOWN
    if name in ("apply_gradients", "minimize", "train_on_batch", "test_on_batch", *_LOSS_SCALING):
        return things.method(
            m, Thing("model" if "batch" in name else "optimizer", "?"), name, node, arguments
        )
    if name in ("predict", "fit", "evaluate") and _MODEL.search(owner):
        if m.frame.module.imports_any(*_PREDICTORS):
            return UNKNOWN
        return things.method(m, Thing("model", "?"), name, node, arguments)
    if name == "result" and _METRIC.search(owner) and not arguments.positional:
        return Tensor()
    if name == "run" and "feed_dict" in arguments.named:
        m.emit(Call(m.at(node), "session.run", node))
        m.work(strong=True)
        return Array()
    if name in pipelines.STAGES and _DATASET.search(owner):
        return pipelines.method(m, Dataset(source="?", prefetched=False), name, node, arguments)
    if name == "as_numpy_iterator":
        return pipelines.method(m, Dataset(source="?", prefetched=True), name, node, arguments)
    if name in ("encode", "decode") and _MODEL.search(owner) and reads.count_tensors(arguments):
        m.work(strong=True)
        return Tensor()
    if name == "call" or (_MODEL.search(name) and arguments.positional and not _NOT_A_CALL.search(name)):
        return _call_model(m, node, arguments)
    if _STEP.search(name.lower()) and not (name == "step" and _SIMULATED.search(owner)):
        m.work(strong=True)
    if _LOSS.search(name.lower()) and len(arguments.positional) >= 2 and not _NOT_A_CALL.search(name):
        return Tensor()
    return UNKNOWN
