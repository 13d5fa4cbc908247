"""Which files share a process of ``pytest -n``. ``tests/conftest.py`` offers this to pytest.

``--dist loadfile`` gives each process whole files. The browser's tests share a service with finished jobs, which takes
a minute to make: handed out by files, every process would make one.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_TOGETHER = ("tests/browser/",)


class _ByPlace(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return next((place for place in _TOGETHER if nodeid.startswith(place)), super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _ByPlace | None:
    return _ByPlace(config, log) if config.getvalue("dist") == "loadfile" else None
