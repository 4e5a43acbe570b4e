"""Tasks of keras_hub, on raw texts and images: Stoker gives what the task itself gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import stoker

keras_hub = pytest.importorskip("keras_hub", reason="keras_hub is not installed", exc_type=ImportError)

pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = ["the quick brown fox", "the lazy dog jumped", "fox and dog", "brown dog quick"] * 6
LABELS: Any = np.arange(len(TEXTS)) % 2
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "quick",
    "brown",
    "fox",
    "lazy",
    "dog",
    "jumped",
    "and",
]
PIXELS: Any = np.random.default_rng(0).integers(0, 255, (24, 8, 8, 3)).astype("float32")
TOKENS = {
    "token_ids": np.random.default_rng(1).integers(0, len(WORDS), (24, 6)).astype("int32"),
    "segment_ids": np.zeros((24, 6), "int32"),
    "padding_mask": np.ones((24, 6), "int32"),
}


def compile_classifier(task: Any) -> Any:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    task.compile(optimizer=keras.optimizers.Adam(0.01), loss=loss, metrics=["accuracy"])
    return task


def make_text_classifier(*, preprocess: bool = True, lora: bool = False, int8: bool = False) -> Any:
    models = keras_hub.models
    backbone = models.BertBackbone(
        vocabulary_size=len(WORDS),
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=6,
    )
    if lora:
        backbone.enable_lora(2)
    if int8:
        backbone.quantize("int8")
    tokenizer = models.BertTokenizer(vocabulary=WORDS)
    preprocessor = models.BertTextClassifierPreprocessor(tokenizer, sequence_length=6) if preprocess else None
    return compile_classifier(
        models.BertTextClassifier(backbone=backbone, num_classes=2, preprocessor=preprocessor)
    )


def make_image_classifier() -> Any:
    models = keras_hub.models
    backbone = models.ResNetBackbone(
        input_conv_filters=[64],
        input_conv_kernel_sizes=[3],
        stackwise_num_filters=[64],
        stackwise_num_blocks=[1],
        stackwise_num_strides=[1],
        block_type="basic_block",
        use_pre_activation=False,
    )
    converter = keras_hub.layers.ResNetImageConverter(image_size=(8, 8), scale=1 / 255)
    preprocessor = models.ResNetImageClassifierPreprocessor(converter)
    return compile_classifier(
        models.ResNetImageClassifier(backbone=backbone, num_classes=2, preprocessor=preprocessor)
    )


def make_text_generator() -> Any:
    models = keras_hub.models
    merges = ["Ġ a", "a i", "p l", "n e", "ai r", "pl a", "pla ne", "Ġa ir"]
    parts = [
        "!",
        "<|endoftext|>",
        *(part for merge in merges for part in (*merge.split(), merge.replace(" ", ""))),
    ]
    vocabulary = {part: number for number, part in enumerate(dict.fromkeys(parts))}
    tokenizer = models.GPT2Tokenizer(vocabulary=vocabulary, merges=merges)
    backbone = models.GPT2Backbone(
        vocabulary_size=len(vocabulary),
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=8,
    )
    preprocessor = models.GPT2CausalLMPreprocessor(tokenizer, sequence_length=8)
    return models.GPT2CausalLM(backbone=backbone, preprocessor=preprocessor)


Case = tuple[Callable[[], Any], Any, Any, dict[str, Any]]
CASES: dict[str, Case] = {
    "raw texts": (make_text_classifier, TEXTS, LABELS, {"validation_data": (TEXTS[:9], LABELS[:9])}),
    "no preprocessor": (lambda: make_text_classifier(preprocess=False), TOKENS, LABELS, {}),
    "lora": (lambda: make_text_classifier(lora=True), TEXTS, LABELS, {}),
    "int8": (lambda: make_text_classifier(int8=True), TEXTS, LABELS, {}),
    "raw pixels": (make_image_classifier, PIXELS, LABELS, {"validation_data": (PIXELS[:9], LABELS[:9])}),
    "generation": (make_text_generator, [" airplane air", " air"] * 12, None, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_task_gives_what_it_gives_under_keras(name: str) -> None:
    make, x, y, options = CASES[name]
    found = []
    for verbs in (None, stoker):
        keras.utils.set_random_seed(7)
        task = make()
        arguments = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0, **options}
        if verbs is None:
            history = task.fit(x, y, **arguments)
            scores, answers = task.evaluate(x, y, batch_size=8, verbose=0), task.predict(x, 8, verbose=0)
        else:
            history = verbs.fit(task, x, y, plan="none, unfused", **arguments)
            scores = verbs.evaluate(task, x, y, batch_size=8, verbose=0)
            answers = verbs.predict(task, x, 8, verbose=0)
        found.append((history.history, task.get_weights(), scores, answers))
    (history, weights, scores, answers), (our_history, our_weights, our_scores, our_answers) = found
    assert our_history.keys() == history.keys()
    for key in history:
        np.testing.assert_allclose(our_history[key], history[key], rtol=1e-6)
    for ours, theirs in zip(our_weights, weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_allclose(our_scores, scores, rtol=1e-6)
    np.testing.assert_allclose(our_answers, answers, rtol=1e-5, atol=1e-6)
