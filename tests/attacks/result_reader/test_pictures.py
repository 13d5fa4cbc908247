"""Names of tasks, agents and models in a report's pictures: they stay text in SVG, in HTML and in their addresses."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import AsyncIterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result, Usage
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome
from tests.api_in_process import Api, api_open

HOSTILE = {
    "a script": "</svg><script>alert(1)</script>",
    "an end of the title": "</title></desc></style><script>alert(1)</script>",
    "a handler": '" onload="alert(1)" x=\'',
    "a section": "]]><script>alert(1)</script><![CDATA[",
    "an entity": "&lt;script&gt;&#60;script&#62;&xxe;<!DOCTYPE x [<!ENTITY xxe SYSTEM 'file:///etc/passwd'>]>",
    "another direction": "\u202e\u2066gnp.exe\u2069\u200f",
    "no letters": "\x00\x08\x1b[31m\x85\ufffe",
    "ten thousand letters": "<b>" * 3334,
    "an address": "javascript:alert(1)//?agent=other&task=x#y",
}
HONEST = "R&D <é 漢> \"fast\" 'n' cheap"
STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
LEASE = timedelta(minutes=1)
NAMES = ("forest", "cost", "time", "tasks", "attempts", "durations", "tokens", "trend")
_FORBIDDEN = {"script", "foreignobject", "image", "a", "use", "animate", "set", "iframe", "object", "img", "link", "b"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with api_open(tmp_path, _env_file=None) as api:
        yield api


async def a_job(api: Api, name: str) -> Job:
    """Everything that somebody else may name has this name."""
    store, now = api.service.installation.store, api.service.installation.clock()
    name = name.replace("\x00", "\x01")  # no database takes it
    tasks = tuple(TaskRef(name=f"{name}{number}", digest=f"sha256:{number:064x}") for number in range(2))
    agents = (AgentSpec(name=name, model=name), AgentSpec(name="other"))
    spec = JobSpec(name=name, dataset=name, tasks=tasks, agents=agents, attempts=2)
    job = await store.jobs.create(spec, tuple(plan(spec)), now)
    for number, trial in enumerate(await store.trials.claim("w", LEASE, 100, now, job_id=job.id)):
        outcome = Outcome.PASSED if number % 3 else Outcome.FAILED
        usage = Usage(input_tokens=5, output_tokens=5, cost_usd=0.1)
        result = Result(outcome=outcome, rewards={"reward": float(bool(number % 3))}, seconds=1.0, usage=usage)
        await store.trials.finish(trial.id, trial.try_number, result, now)
    return job


class Seen(HTMLParser):
    """What a browser would find."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("what", HOSTILE)
async def test_no_name_is_more_than_text_in_a_picture(api: Api, what: str) -> None:
    job = await a_job(api, HOSTILE[what])
    for name in NAMES:
        answer = await api.client.get(f"/api/v1/jobs/{job.id}/charts/{name}.svg")
        assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        assert answer.headers["x-content-type-options"] == "nosniff"
        elements = list(ElementTree.fromstring(answer.text).iter())
        assert not {each.tag.rpartition("}")[2].lower() for each in elements} & _FORBIDDEN
        assert not {key for each in elements for key in each.attrib if key.startswith("on") or "href" in key}
        assert not STEERING.search(answer.text) and len(answer.text) < 200_000


@pytest.mark.parametrize("what", HOSTILE)
async def test_no_name_is_more_than_text_in_the_report(api: Api, what: str) -> None:
    job = await a_job(api, HOSTILE[what])
    answer = await api.client.get(f"/api/v1/jobs/{job.id}/report.html")
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    seen = Seen()
    seen.feed(answer.text)
    assert not seen.tags & _FORBIDDEN
    assert not {name for name in seen.attributes if name.startswith("on") or name in ("href", "src", "action", "style")}
    assert seen.attributes["http-equiv"] == {"Content-Security-Policy"}
    assert not STEERING.search(answer.text) and len(answer.text) < 400_000


@pytest.mark.parametrize("what", HOSTILE)
async def test_no_name_leads_elsewhere_or_says_more_than_one_line(api: Api, what: str) -> None:
    """What the page draws and follows: marks with paths of the page alone."""
    job = await a_job(api, HOSTILE[what])
    charts = (await api.client.get(f"/api/v1/jobs/{job.id}/charts")).json()["items"]
    spots = [spot for chart in charts for spot in chart["drawing"]["spots"]]
    assert all(len(spot["text"]) < 700 and spot["text"].isprintable() for spot in spots)
    for spot in spots:
        if spot["to"] is not None:
            found = urlsplit(spot["to"])
            assert (found.scheme, found.netloc, found.fragment) == ("", "", "")
            assert re.fullmatch(r"/tasks/sha256:[0-9a-f]{64}|/jobs/\d+", found.path)
            assert set(parse_qs(found.query)) <= {"task", "agent", "model"}
            assert all(len(values) == 1 for values in parse_qs(found.query).values())


async def test_an_honest_name_is_shown_to_the_letter(api: Api) -> None:
    job = await a_job(api, HONEST)
    answer = await api.client.get(f"/api/v1/jobs/{job.id}/charts/forest.svg", params={"width": 1200})
    texts = [each.text for each in ElementTree.fromstring(answer.text).iter() if each.text]
    assert f"{HONEST} / {HONEST}" in texts
    seen = Seen()
    seen.feed((await api.client.get(f"/api/v1/jobs/{job.id}/report.html")).text)
    assert f"{HONEST}0" in seen.text
    charts = (await api.client.get(f"/api/v1/jobs/{job.id}/charts")).json()["items"]
    [cell] = [
        s for c in charts for s in c["drawing"]["spots"] if s["text"].startswith(f"{HONEST}0, {HONEST} / {HONEST}:")
    ]
    assert parse_qs(urlsplit(cell["to"]).query) == {"task": [f"{HONEST}0"], "agent": [HONEST], "model": [HONEST]}
