"""What every protection from scale-in promises."""

from __future__ import annotations

import pytest

from seatrial.errors import ProtectionRefused, ServiceUnavailable
from tests.contracts.platform.conftest import Place


async def test_the_platform_has_confirmed_when_protect_returns(place: Place) -> None:
    assert not place.is_protected()
    await place.protection.protect()
    assert place.is_protected()
    await place.protection.protect()
    assert place.is_protected(), "a repetition renews it"
    await place.protection.release()
    assert not place.is_protected()


async def test_a_release_may_be_repeated_and_needs_no_protection_before(place: Place) -> None:
    await place.protection.release()
    await place.protection.protect()
    await place.protection.release()
    await place.protection.release()
    assert not place.is_protected()
    await place.protection.protect()
    assert place.is_protected()


async def test_a_machine_that_the_platform_ends_already_is_refused(place: Place) -> None:
    place.begin_to_end()
    with pytest.raises(ProtectionRefused):
        await place.protection.protect()


async def test_a_platform_that_does_not_answer_protects_nothing(place: Place) -> None:
    place.go_away()
    with pytest.raises(ServiceUnavailable):
        await place.protection.protect()
    assert not place.is_protected()


def test_it_is_renewed_in_time_or_does_not_expire(place: Place) -> None:
    assert place.protection.renew_sec is None or 0 < place.protection.renew_sec <= 1800
