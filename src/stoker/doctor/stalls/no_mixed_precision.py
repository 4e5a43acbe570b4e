"""The device has fast half precision, but the model does not use it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.values import Thing, Value

# Words that show that a file is meant for GPUs.
_FOR_GPU = re.compile(r"""["']/?(?:device:)?GPU\b|CUDA_VISIBLE_DEVICES|MirroredStrategy|set_memory_growth""")
_ON_CPU = re.compile(r"""CUDA_VISIBLE_DEVICES["']\]\s*=\s*["'](?:-1)?["']|set_visible_devices\(\[\]""")
# Words that show that the author has considered precision.
_PRECISION = re.compile(
    r"mixed_precision|mixed_float16|mixed_bfloat16|float16|dtype_policy|float64|auto_mixed"
)
# Below this size, a layer is too small for tensor cores to matter.
_LARGE = {"Conv2D": 64, "Conv3D": 32, "Conv1D": 256, "Dense": 1024, "LSTM": 512, "GRU": 512}
_SIZES = {"Dense": "units", "LSTM": "units", "GRU": "units"}


class NoMixedPrecision(Rule):
    """Large models that programs for GPUs train in float32."""

    slug = "no-mixed-precision"
    code = "STK403"
    account = "compute"
    title = "The device has fast half precision, but the model does not use it"
    remedy = "Set keras.mixed_precision.set_global_policy('mixed_float16') or 'mixed_bfloat16'."
    severity = "info"
    what = (
        "Reports a Keras model with large layers (64 filters or 1024 units and more, or one of "
        "`keras.applications`) that `fit` trains in a file that asks for GPUs and nowhere speaks of precision."
    )
    why = (
        "GPUs with tensor cores multiply float16 matrices two to eight times as fast as float32 ones, and half the "
        "bytes go over the bus. Variables stay in float32, so accuracy rarely suffers."
    )
    known_problems = (
        "The code does not show which GPU it will run on; one without tensor cores gains little. "
        "Only models whose layers the code shows, `Sequential` ones and those of `keras.applications`, are judged."
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report every large model that is trained."""
        seen: set[int] = set()
        for fact in analysis.facts:
            model = fact.receiver if isinstance(fact, Call) and fact.name == "model.fit" else None
            if not isinstance(model, Thing) or model.node is None or model.module is None:
                continue
            if id(model.node) not in seen and _is_large(model) and _wants_gpu(model.module, fact.at.module):
                seen.add(id(model.node))
                message = "this model trains in float32; mixed precision would use the GPU's tensor cores"
                yield self.problem_at(model.module, model.node, message)


def _wants_gpu(*modules: SourceModule) -> bool:
    texts = [module.text for module in modules]
    silent = not any(_PRECISION.search(text) or _ON_CPU.search(text) for text in texts)
    return silent and any(_FOR_GPU.search(text) for text in texts)


def _is_large(model: Thing) -> bool:
    if model.name.startswith("keras.applications."):
        return True
    layers = model.about.get("layer_list")
    return isinstance(layers, list) and any(map(_is_large_layer, layers))


def _is_large_layer(layer: Value) -> bool:
    arguments = layer.about.get("arguments") if isinstance(layer, Thing) else None
    if not isinstance(layer, Thing) or not isinstance(arguments, Arguments):
        return False
    kind = layer.name.rsplit(".", 1)[-1]
    size = arguments.const(0, _SIZES.get(kind, "filters"))
    return kind in _LARGE and isinstance(size, int) and size >= _LARGE[kind]


STALL = NoMixedPrecision()
