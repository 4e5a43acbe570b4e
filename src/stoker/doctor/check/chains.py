"""Pipelines as the dataset rules see them: complete chains of stages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from stoker.doctor.check.source.facts import Analysis, At, Extended
from stoker.doctor.check.source.values import ChainStage, Dataset

_RANDOM = re.compile(
    r"^(tf1?\.random\.|tf\.image\.(random|stateless_random)|tf\.image\.sample_distorted|np\.random\.|random\."
    r"|keras\.random\.|keras\.layers\.Random|keras\.preprocessing\.image\.random)"
)


def complete(analysis: Analysis) -> Iterator[tuple[At, Dataset]]:
    """Yield every finished pipeline: one to which no further stage was added."""
    extended = [fact for fact in analysis.facts if isinstance(fact, Extended)]
    parents = {id(fact.parent) for fact in extended}
    for fact in extended:
        if id(fact.dataset) not in parents and fact.dataset.stages:
            for chain in _chains(fact.dataset):
                yield fact.at, chain


def _chains(dataset: Dataset) -> Iterator[Dataset]:
    """Yield the pipeline itself, and one chain for each pipeline zipped into it, from that pipeline's source on."""
    yield dataset
    for part in dataset.parts:
        for chain in _chains(part):
            yield replace(chain, stages=chain.stages + dataset.stages)


def is_random(stage: ChainStage) -> bool:
    """Return whether a stage's function draws random numbers."""
    return any(effect == "+random" or _RANDOM.match(effect) for effect in stage.effects)
