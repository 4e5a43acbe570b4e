"""Input: the tf.data pipelines the program read, and what `stoker.tune` did to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import Measurements, ProbePart
from stoker.doctor.probes.parts.tallies import MAX_ROWS
from stoker.doctor.probes.pipelines import Pipeline, does_make_ahead

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.records import PipelineRow, TuningRow


@dataclass(frozen=True)
class InputPart(ProbePart):
    """Pipelines, and the tuner's reports with the lines that asked for them."""

    pipelines: list[Pipeline] = field(default_factory=list)
    tunings: list[tuple[SiteKey | None, TuningRow]] = field(default_factory=list)

    def sites(self) -> Iterable[SiteKey]:
        return [stage.site for pipeline in self.pipelines for stage in pipeline.stages if stage.site]

    def tables(self, m: Measurements) -> dict[str, list[PipelineRow] | list[TuningRow]]:
        from stoker.doctor.attach.sites import site_columns

        return {
            "pipelines": [_row(pipeline) for pipeline in self.pipelines[:MAX_ROWS]],
            "tunings": [replace(row, **site_columns(site)) for site, row in self.tunings],
        }


def _row(p: Pipeline) -> PipelineRow:
    from stoker.doctor.attach.sites import site_columns
    from stoker.records import PipelineRow, PipelineStage, RanStage

    return PipelineRow(
        stages=[PipelineStage(name=s.name, **site_columns(s.site), python=s.python) for s in p.stages],
        elements=p.elements,
        wait_s=p.wait_ns / 1e9,
        first_wait_s=p.first_ns / 1e9,
        ran=[RanStage(name=name, elements=count, seconds=ns / 1e9) for name, count, ns in p.ran],
        ahead=does_make_ahead(p),
        iterators=p.iterators,
        teardown_s=p.teardown_ns / 1e9,
    )
