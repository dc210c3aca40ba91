"""[llm] and [llm.<name>] as layers: a later source over an earlier one, each key with the origin that it was given for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handwork.config.credentials import Credential, attached, origin_of
from handwork.config.providers import LOCAL, provider_name
from handwork.config.settings import LLMSettings

_OF_A_PLACE = ("base_url", "api_type", "api_version")
"""What tells how to reach a provider; it does not follow to another one."""
_SECRET = ("api_key", "headers")


@dataclass(frozen=True)
class Layered:
    """What is known of one model's settings so far: values without secrets, and every credential that was given."""

    environ: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)
    credentials: tuple[Credential, ...] = ()
    notices: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: LLMSettings, environ: Mapping[str, str]) -> Layered:
        """Settings that are complete, as the first layer: their key is for the place that they name."""
        return cls(environ).over({name: getattr(settings, name) for name in settings.model_fields_set})

    @property
    def origin(self) -> str | None:
        """Where a request goes."""
        return origin_of(self._get("model"), self._get("base_url"), self._get("api_type"), self.environ)

    def over(self, given: Mapping[str, Any], *, beside: Layered | None = None) -> Layered:
        """This with `given` over it. A key in `given` is for the place that results (or for that of `beside`)."""
        values, notices = self._moved(given)
        values |= {name: value for name, value in given.items() if name not in _SECRET}
        after = replace(self, values=values, notices=notices)
        moved = self.origin not in (None, after.origin) or self._get("model") not in ("", after._get("model"))
        if moved and "prices" not in given:
            values.pop("prices", None)
        if not any(name in given for name in _SECRET):
            return after
        new = Credential(given.get("api_key"), given.get("headers"), (beside or after).origin)
        return replace(after, credentials=(*self.credentials, new))

    def bound(self, origin: str | None) -> Layered:
        """This with the credentials that were given before any place was named bound to `origin`."""
        return replace(
            self,
            credentials=tuple(replace(each, origin=each.origin or origin) for each in self.credentials),
        )

    def settled(self) -> tuple[LLMSettings, tuple[str, ...]]:
        """The settings with what may go to their place, and what the user should know of what may not."""
        target = self.origin
        chosen = attached(self.credentials, target)
        secrets: dict[str, Any] = {"api_key": chosen.key, "headers": chosen.headers}
        notices = list(self.notices)
        for name, value in secrets.items():
            other = next((c.origin for c in reversed(self.credentials) if _given(c, name)), None)
            if value is None and other is not None and target != LOCAL:  # nobody needs a key in this process
                notices.append(
                    f"{name} is not used for {self._get('model') or target}: it was given for {other}, and this is "
                    f"{target}. To use one there, give it together with that model or base_url"
                )
        key = {name: value for name, value in secrets.items() if value is not None}
        return LLMSettings(**self.values, **key), tuple(notices)

    def _get(self, name: str) -> str:
        return str(self.values.get(name, ""))

    def _moved(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The values that still hold under `given`: a base URL does not follow to another provider's model."""
        values = dict(self.values)
        old, new = self._get("model"), str(given.get("model", ""))
        if not old or not new or old == new:
            return values, self.notices
        before = provider_name(old, self._get("base_url"), self._get("api_type")) or "openai"
        if provider_name(new, self._get("base_url")) in ("", before):
            return values, self.notices
        dropped = [name for name in _OF_A_PLACE if values.pop(name, None) and name not in given]
        told = f"{', '.join(dropped)} of {old} is not used for {new}: that is another provider"
        return values, (*self.notices, told) if dropped else self.notices


def _given(credential: Credential, name: str) -> bool:
    return bool(credential.key if name == "api_key" else credential.headers)


class LLMTables:
    """All [llm] tables while the sources are read, each source over the ones before it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._tables = {"default": Layered(environ)}

    def add(self, own: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]) -> None:
        """One source: its [llm], which also goes over every [llm.<name>] so far, and its own [llm.<name>]."""
        # a key of [llm] is for [llm]'s place, whichever places the named tables have
        default = self._tables["default"].over(own)
        self._tables = {
            name: default if name == "default" else table.over(own, beside=default)
            for name, table in self._tables.items()
        }
        for name, given in named.items():
            before = self._tables.get(name.lower(), replace(default, notices=()))
            self._tables[name.lower()] = before.over(given)

    def settled(self) -> tuple[dict[str, LLMSettings], list[str]]:
        """The settings of every table, and the notices, each once."""
        notices: dict[str, None] = {}
        settings: dict[str, LLMSettings] = {}
        origin = self._tables["default"].origin
        for name, table in self._tables.items():
            settings[name], told = table.bound(origin).settled()
            where = "" if name == "default" else f"[llm.{name}] "
            notices |= {text if text in notices else where + text: None for text in told}
        return settings, list(notices)


def with_model(settings: LLMSettings, model: str, environ: Mapping[str, str]) -> tuple[LLMSettings, tuple[str, ...]]:
    """Complete settings with another model over them, as one more layer would have it; and the notices."""
    return Layered.of(settings, environ).over({"model": model}).settled()
