"""The memory that validation allocates beyond training, according to the devices' own peak counters."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.memory.held import ValidationPeak


class ValidationWatch:
    """Compares the peaks at the beginning and the end of evaluations. Peaks only rise."""

    def __init__(self) -> None:
        # By device: the highest peak outside any evaluation, and inside one.
        self._outside: dict[str, int] = {}
        self._inside: dict[str, int] = {}
        self._sites: dict[str, SiteKey] = {}
        # By device: the memory in use when the open evaluation began; and when the last one that raised the peak began.
        self._in_use: dict[str, int] = {}
        self._bases: dict[str, int] = {}
        self._found: dict[str, int] = {}

    def begin(self, peaks: Mapping[str, int], in_use: Mapping[str, int]) -> None:
        """Begin an evaluation: what has raised the peaks since the last one was not an evaluation."""
        self._in_use = dict(in_use)
        for device, peak in peaks.items():
            if peak > self._inside.get(device, 0):
                self._outside[device] = peak
                self._inside.pop(device, None)
                self._found.pop(device, None)

    def end(self, peaks: Mapping[str, int], site: SiteKey | None) -> None:
        """End an evaluation."""
        for device, peak in peaks.items():
            if device not in self._outside or peak <= self._inside.get(device, self._outside[device]):
                continue
            base = self._in_use.get(device, 0)
            if device in self._inside:
                # What stays in memory may have grown since then, and does not belong to the validation.
                grown = max(0, base - self._bases[device])
                self._found[device] += max(0, peak - self._inside[device] - grown)
            else:
                self._found[device] = peak - self._outside[device]
            self._inside[device], self._bases[device] = peak, base
            if device not in self._sites:
                self._sites |= {device: site} if site is not None else {}

    def peaks(self, now: Mapping[str, int]) -> list[ValidationPeak]:
        """Return, for each device, what validation needs beyond everything else; `now` are the present peaks."""
        return [
            ValidationPeak(self._sites[device], device, self._found[device], self._outside[device])
            for device, inside in self._inside.items()
            if device in self._sites and now.get(device, inside) <= inside
        ]
