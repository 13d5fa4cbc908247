"""What a model's tokens cost, and what a call cost.

Tables come from two places: the operator's own list, and LiteLLM's. Both have LiteLLM's field names, so an entry can be
copied from one to the other. A cost that the provider reported for a call wins over both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.model_calls.model_call import CallUsage, CostBy

_STEP = re.compile(r"input_cost_per_token_above_(\d{1,5})k_tokens(?:_[a-z]+)?")
_TIERS = ("flex", "balanced", "priority", "fast", "ultrafast")
_CHEAPER = frozenset({"flex", "batch", "batches"})
_STANDARD = frozenset({"", "auto", "default", "standard", "standard_only", "on_demand"})
_LONGEST_OUTPUT = 10**8
"""Tokens. What is above it is a mistake of a list."""
_SAME_PRICE_ELSEWHERE = ("openrouter/",)
"""Resellers at the maker's list price. What they charged for a call is in their answers."""


class Rates(Frozen):
    """Dollars per token. ``None``: as a usual token of the prompt or the output."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(ge=0, allow_inf_nan=False)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    long_cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    reasoning: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    def cost_of(self, usage: CallUsage) -> float:
        """The parts of a total are at most the total, whatever a provider told."""
        total, output = usage.input_tokens or 0, usage.output_tokens or 0
        cached = min(usage.cached_tokens or 0, total)
        written = min(usage.cache_write_tokens or 0, total - cached)
        long = min(usage.long_cache_write_tokens or 0, written)
        reasoning = min(usage.reasoning_tokens or 0, output)
        write = _or(self.cache_write, self.input)
        return (
            (total - cached - written) * self.input
            + cached * _or(self.cached, self.input)
            + (written - long) * write
            + long * _or(self.long_cache_write, write)
            + (output - reasoning) * self.output
            + reasoning * _or(self.reasoning, self.output)
        )


class Step(Frozen):
    """Rates of calls whose prompt is longer than a limit. They hold for the whole call."""

    above_input_tokens: int = Field(ge=0)
    rates: Rates


class TierPrice(Frozen):
    """The price of one service tier, such as ``priority``."""

    rates: Rates
    steps: tuple[Step, ...] = ()
    """The longest limit first."""

    def rates_for(self, input_tokens: int) -> Rates:
        return next((step.rates for step in self.steps if input_tokens > step.above_input_tokens), self.rates)


class Price(TierPrice):
    """What a model costs."""

    tiers: dict[str, TierPrice] = {}
    """Service tiers with rates of their own."""
    factors: dict[str, float] = {}
    """Ways of serving that multiply the price, such as a fast mode or a region."""
    longest_output: int | None = Field(default=None, ge=1)
    """Tokens that the model's answers have at most; ``None`` if the list does not say."""

    def cost_of(self, usage: CallUsage, ways: Sequence[str] = ()) -> float | None:
        """Dollars of a call. ``ways``: service tier, speed and region that the provider told.

        ``None`` if the usage is not known, or a way of serving has no known price and may be a dearer one."""
        if not usage.is_known:
            return None
        price: TierPrice = self
        factor = 1.0
        for way in ways:
            if way in self.tiers:
                price = self.tiers[way]
            elif way in self.factors:
                factor *= self.factors[way]
            elif way not in _STANDARD | _CHEAPER:
                return None
        return price.rates_for(usage.input_tokens or 0).cost_of(usage) * factor

    @property
    def free(self) -> bool:
        return self.rates.input == self.rates.output == 0 and not self.steps and not self.tiers


class NamedPrice(Frozen):
    """A price and the table that it is from."""

    price: Price
    by: CostBy


class CallCost(Frozen):
    dollars: float | None = None
    by: CostBy | None = None


def price_of(model: str, tables: Sequence[tuple[CostBy, Mapping[str, Price]]]) -> NamedPrice | None:
    """The price of a model by its LiteLLM name, from the first table that has one."""
    names = [model, *(model.removeprefix(reseller) for reseller in _SAME_PRICE_ELSEWHERE if model.startswith(reseller))]
    for by, table in tables:
        for name in names:
            price = table.get(name)
            if price is not None:
                return NamedPrice(price=price, by=by)
    return None


def cost_of(
    usage: CallUsage, price: NamedPrice | None, told_usd: float | None = None, ways: Sequence[str] = ()
) -> CallCost:
    """What a call cost: the provider's own figure if it told one, otherwise by the table."""
    if told_usd is not None:
        return CallCost(dollars=told_usd, by=CostBy.PROVIDER)
    dollars = None if price is None else price.price.cost_of(usage, ways)
    return CallCost() if price is None or dollars is None else CallCost(dollars=dollars, by=price.by)


def price_from(entry: Mapping[str, Any]) -> Price | None:
    """The price in an entry of LiteLLM's list. ``None`` if the model is not sold by tokens."""
    usual = _tier(entry, "")
    if usual is None:
        return None
    tiers = {tier: found for tier in _TIERS if (found := _tier(entry, f"_{tier}", usual)) is not None}
    special = entry.get("provider_specific_entry")
    factors = special if isinstance(special, Mapping) else {}
    longest = entry.get("max_output_tokens")
    return Price(
        rates=usual.rates,
        steps=usual.steps,
        tiers=tiers,
        factors={str(way): float(factor) for way, factor in factors.items() if _is_rate(factor)},
        longest_output=int(longest) if _is_rate(longest) and 1 <= longest <= _LONGEST_OUTPUT else None,
    )


def _tier(entry: Mapping[str, Any], suffix: str, usual: TierPrice | None = None) -> TierPrice | None:
    """``usual``: the price without a tier, if this is one. Where the list is silent, the dearer rate holds."""
    rates = _rates(entry, "", suffix, usual.rates if usual else None)
    if rates is None:
        return _from_ranges(entry) if usual is None else None
    limits = {int(found[1]) for name in entry if (found := _STEP.fullmatch(name))}
    steps = []
    for limit in sorted(limits, reverse=True):
        step = _rates(entry, f"_above_{limit}k_tokens", suffix, rates)
        if step is None and usual is not None:
            step = _dearer(rates, usual.rates_for(limit * 1000 + 1))
        if step is not None:
            steps.append(Step(above_input_tokens=limit * 1000, rates=step))
    return TierPrice(rates=rates, steps=tuple(steps))


def _dearer(one: Rates, other: Rates) -> Rates:
    kinds = {name: (one.__dict__[name], other.__dict__[name]) for name in Rates.model_fields}
    return Rates(
        **{name: max((rate for rate in pair if rate is not None), default=None) for name, pair in kinds.items()}
    )


def _rates(entry: Mapping[str, Any], step: str, tier: str, usual: Rates | None) -> Rates | None:
    """``usual``: rates for kinds that have none of their own here."""

    def rate(name: str, default: float | None) -> float | None:
        value = entry.get(f"{name}{step}{tier}")
        return float(value) if _is_rate(value) else default

    if usual is not None and not _is_rate(entry.get(f"input_cost_per_token{step}{tier}")):
        return None
    paid, made = (
        rate("input_cost_per_token", usual.input if usual else None),
        rate("output_cost_per_token", usual.output if usual else None),
    )
    if paid is None or made is None:
        return None
    reasoning = rate("output_cost_per_reasoning_token", usual.reasoning if usual else None)
    return Rates(
        input=paid,
        output=made,
        cached=rate("cache_read_input_token_cost", usual.cached if usual else None),
        cache_write=rate("cache_creation_input_token_cost", usual.cache_write if usual else None),
        long_cache_write=rate("cache_creation_input_token_cost_above_1hr", usual.long_cache_write if usual else None),
        reasoning=None if reasoning == made else reasoning,  # follows the output where that is dearer
    )


def _from_ranges(entry: Mapping[str, Any]) -> TierPrice | None:
    """Some entries have a list of ranges instead of rates. The first range has the usual rates."""
    ranges = entry.get("tiered_pricing")
    steps = []
    for part in ranges if isinstance(ranges, list) else ():
        bounds = part.get("range") if isinstance(part, Mapping) else None
        begin = bounds[0] if isinstance(bounds, list) and bounds else None
        rates = _rates(part, "", "", None) if isinstance(part, Mapping) else None
        if rates is None or not _is_rate(begin):
            return None
        steps.append(Step(above_input_tokens=int(begin), rates=rates))
    if not steps:
        return None
    steps.sort(key=lambda step: step.above_input_tokens, reverse=True)
    return TierPrice(rates=steps[-1].rates, steps=tuple(steps[:-1]))


def _is_rate(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _or(rate: float | None, usual: float) -> float:
    return usual if rate is None else rate
