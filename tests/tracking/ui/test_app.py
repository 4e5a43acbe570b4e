"""Who may ask the page, and what it answers."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.files import JOBS
from stoker.tracking.store import address, writer
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.verifying import verify
from tests.goodput.samples import KILLED, write_job
from tests.tracking.ui.site import HOSTILE, TOKEN, Site, fill, served


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, dict[str, str]]]:
    """A site over a store with a few runs, and their ids."""
    directory = tmp_path_factory.mktemp("site")
    store = address.parse(f"sqlite:///{directory / 'stoker.db'}")
    with pytest.MonkeyPatch.context() as patch:
        made: dict[address.Address, writer.StoreWriter] = {}
        patch.setattr(writer, "_writers", made)
        ids = fill(store, directory, made)
        with served(store) as site:
            yield site, ids
        for one in made.values():
            one.close()


def ask(site: Site, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    given = {"host": f"127.0.0.1:{site.port}", "cookie": f"stoker-token-{site.port}={TOKEN}", **headers}
    for name, value in given.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


def answer(site: Site, path: str) -> Any:
    got = ask(site, path)
    body = got.read()
    assert got.status == 200, body
    return json.loads(body)


@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/events", "/page/x", "/api/delete/x", "/nothere"])
def test_without_the_token_there_is_nothing(filled: tuple[Site, dict[str, str]], path: str) -> None:
    for cookie in ("", f"stoker-token-{filled[0].port}=wrong", "stoker-token=x; =;; a b,c"):
        got = ask(filled[0], path, cookie=cookie)
        assert got.status == 401
        assert b"stoker ui" in got.read()
    assert ask(filled[0], f"{path}?token=wrong", cookie="").status == 401


def test_the_token_becomes_a_cookie_that_scripts_cannot_read(filled: tuple[Site, dict[str, str]]) -> None:
    got = ask(filled[0], f"/?token={TOKEN}", cookie="")
    assert (got.status, got.headers["location"]) == (303, "/")
    assert {"HttpOnly", "SameSite=strict"} <= set(got.headers["set-cookie"].split("; "))


def test_another_name_or_another_page_is_refused(filled: tuple[Site, dict[str, str]]) -> None:
    """As an attacker's name that points here has it, and as an attacker's page has it."""
    site = filled[0]
    for host in ("evil.example", f"evil.example:{site.port}", "127.0.0.1", ""):
        assert ask(site, "/api/runs", host=host).status in (400, 421)
    for origin in ("https://evil.example", "null", f"http://localhost:{site.port}"):
        assert ask(site, "/api/runs", origin=origin).status == 403
    assert ask(site, "/api/runs", origin=site.url).status == 200


def test_only_our_scripts_may_run(filled: tuple[Site, dict[str, str]]) -> None:
    got = ask(filled[0], "/")
    policy, text = got.headers["content-security-policy"], got.read().decode()
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", text.split("<script", 1)[0])
    assert HOSTILE not in text
    assert got.headers["x-content-type-options"] == "nosniff"


def test_the_list_is_filtered_and_sorted(filled: tuple[Site, dict[str, str]]) -> None:
    site, _ = filled
    found = answer(site, "/api/runs?where=kind+%3D+train&sort=loss&limit=2")
    assert found["count"] == 3
    assert [row["name"] for row in found["rows"]] == ["rate 0.01", "rate 0.1"]
    assert "params.rate" in found["columns"]
    got = ask(site, "/api/runs?where=nonsense")
    assert got.status == 404
    assert "cannot read the condition" in json.loads(got.read())["error"]


@pytest.mark.parametrize(
    "path",
    [
        "/api/series?run=RUN&name=loss&points=0", "/api/series?run=RUN&name=loss&points=" + "9" * 5000,
        "/api/series?run=RUN&name=loss&points=-1", "/api/runs?limit=" + "1" * 5000, "/api/runs?where=" + "+" * 20000,
        "/page/RUN", "/page/..%2F..%2Fx", "/page/x.json", "/api/run/%00", "/api/run/" + "x" * 5000,
    ],
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused(filled: tuple[Site, dict[str, str]], path: str) -> None:
    site, ids = filled
    got = ask(site, path.replace("RUN", ids["study"]))
    assert got.status == 404
    assert b"Traceback" not in got.read()


def test_a_run_has_everything(filled: tuple[Site, dict[str, str]]) -> None:
    site, ids = filled
    run = answer(site, f"/api/run/{ids['rate 0.1']}")
    assert run["parameters"] == {"layers": 2, "rate": 0.1}
    assert [one["id"] for one in run["family"]] == [ids["study"]]
    nodes = {one["name"] for one in run["lineage"]["runs"]}
    assert nodes == {"rate 0.1", "serving"}
    assert {one["name"] for one in run["lineage"]["artifacts"]} == {"data.csv", "model-2"}
    series = answer(site, f"/api/series?run={run['id']}&name=loss")
    assert len(series["steps"]) == len(series["values"]) == 300
    hostile = answer(site, f"/api/run/{ids['hostile']}")
    assert hostile["series"]["nan"]["last"] == "nan"


def test_prices_are_summed_over_runs(filled: tuple[Site, dict[str, str]]) -> None:
    site, ids = filled
    (line,) = answer(site, "/api/prices")
    assert (line["file"], line["line"], line["runs"], line["last"]) == ("train.py", 42, 1, ids["measured"])


def test_what_was_changed_is_beside_what_came_of_it(filled: tuple[Site, dict[str, str]]) -> None:
    site, ids = filled
    names = f"{ids['rate 0.001']},{ids['rate 0.1']}"
    (one,) = answer(site, f"/api/differences?runs={names}")
    assert one["changed"]["parameters"] == [{"name": "rate", "a": 0.001, "b": 0.1}]
    assert ask(site, "/api/differences?runs=x").status == 404


def test_the_page_only_reads(filled: tuple[Site, dict[str, str]]) -> None:
    site, ids = filled
    assert ask(site, f"/api/delete/{ids['study']}", "POST").status == 403
    assert ask(site, f"/api/delete/{ids['study']}").status == 405
    assert answer(site, f"/api/run/{ids['study']}")["id"] == ids["study"]


def test_a_hundred_thousand_points_are_thinned(
    tmp_path: Path, own_writers: dict[address.Address, writer.StoreWriter]
) -> None:
    """The lowest and the highest of every stretch are among what is left."""
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    with TrackedRun("long", {}, store=store, kind="track") as run:
        for step in range(100_000):
            run.log(step, loss=50.0 if step == 31_417 else step % 7)
    run.flush()
    with served(store, write=True) as site:
        series = answer(site, f"/api/series?run={run.id}&name=loss")
        assert 1500 <= len(series["values"]) <= 2010
        assert series["steps"] == sorted(series["steps"])
        assert max(series["values"]) == 50.0
        assert ask(site, f"/api/delete/{run.id}", "POST").status == 200
        assert ask(site, f"/api/run/{run.id}").status == 404
    assert verify(store).problems == []


def test_what_is_new_is_told(tmp_path: Path, own_writers: dict[address.Address, writer.StoreWriter]) -> None:
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    run = TrackedRun("live", {}, store=store, kind="track")
    run.log(0, loss=1.0)
    run.flush()
    with served(store) as site:
        got = ask(site, f"/api/events?run={run.id}")
        first = got.readline()
        assert json.loads(first.removeprefix(b"data: "))["points"] == [1, 1]
        run.log(1, loss=0.5)
        run.flush()
        while not (line := got.readline()).startswith(b"data: "):
            pass
        assert json.loads(line.removeprefix(b"data: "))["points"] == [1, 2]
        got.close()


def test_jobs_and_their_ledgers(
    filled: tuple[Site, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, _ = filled
    monkeypatch.chdir(tmp_path)
    assert answer(site, "/api/jobs") == {"count": 0, "rows": []}
    job = write_job(Path(JOBS)).name
    (Path(JOBS) / "damaged" / "events").mkdir(parents=True)
    listed = answer(site, "/api/jobs")
    assert listed["count"] == 2
    assert [(one["job"], one["goodput"], one["restarts"]) for one in listed["rows"]] == [(job, 0.6, 1)]
    found = answer(site, f"/api/job/{job}?price=3.60/h")
    assert found["accounts"]["recomputed"] == 19.0
    assert found["paid"] == "0.20"
    assert found["account_costs"]["productive"] == "0.12"
    assert [one["what"] for one in found["causes"]] == [KILLED, "the first start"]
    for path, reason in (
        ("/api/job/nothing", "there is no job nothing"),
        ("/api/job/..%2F..", "there is no job"),
        (f"/api/job/{job}?price=much", "give what one worker costs"),
    ):
        got = ask(site, path)
        assert got.status == 404
        assert reason in got.read().decode() or path.endswith("..")
