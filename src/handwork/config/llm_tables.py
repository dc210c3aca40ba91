"""[llm] and [llm.<name>] as layers: a later source over an earlier one, each key with the origin that it was given for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handwork.config.credentials import HOW_TO_GIVE, Credential, attached, origin_of, provider_at, url_origin
from handwork.config.key_forms import owners_of
from handwork.config.layers import Layer, Origin
from handwork.config.providers import LOCAL, provider_name
from handwork.config.settings import LLMSettings

_OF_A_PLACE = ("base_url", "api_type", "api_version")
"""What tells how to reach a provider; it does not follow to another one."""
_OF_A_MODEL = ("prices", "sees_images")
"""What is known of one model; it does not follow to another one."""
_SECRET = ("api_key", "headers")
_CHOICE = ("model", "base_url", "api_type", "api_version", "sees_images")
"""What says which model is asked, and where."""


@dataclass(frozen=True)
class Settled:
    """Complete settings, all that the user should know of them, and, of that, what says that a key does not go there.

    `chosen` says which model was taken, and why, where the settings named none.
    """

    settings: LLMSettings
    notices: tuple[str, ...] = ()
    withheld: str = ""
    chosen: str = ""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """Where each value was set that was set at all."""


@dataclass(frozen=True)
class Layered:
    """What is known of one model's settings so far: values without secrets, and every credential that was given."""

    environ: Mapping[str, str]
    values: Mapping[str, Any] = field(default_factory=dict)
    credentials: tuple[Credential, ...] = ()
    notices: tuple[str, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: LLMSettings, environ: Mapping[str, str]) -> Layered:
        """Settings that are complete, as the first layer: their key is for the place that they name."""
        return cls(environ).over({name: getattr(settings, name) for name in settings.model_fields_set})

    @property
    def origin(self) -> str | None:
        """Where a request goes."""
        return origin_of(self._get("model"), self._get("base_url"), self._get("api_type"), self.environ)

    def over(
        self,
        given: Mapping[str, Any],
        *,
        beside: Layered | None = None,
        origins: Mapping[str, Origin] | None = None,
    ) -> Layered:
        """This with `given` over it. A key in `given` is for the place that results (or for that of `beside`).

        `origins` says where each of `given` was read.
        """
        origins = origins or {}
        values, notices = self._moved(given)
        values |= {name: value for name, value in given.items() if name not in _SECRET}
        after = replace(self, values=values, notices=notices)
        moved = self.origin not in (None, after.origin) or self._get("model") not in ("", after._get("model"))
        if moved:
            values = {name: value for name, value in values.items() if name not in _OF_A_MODEL or name in given}
            after = replace(after, values=values)
        held = {name: origin for name, origin in self.origins.items() if name in values and name not in given}
        new = {name: origins[name] for name in given if name in origins}
        after = replace(after, origins=held | {name: origin for name, origin in new.items() if name not in _SECRET})
        if not any(name in given for name in _SECRET):
            return after
        sources = {name: origin for name, origin in new.items() if name in _SECRET}
        origin = (beside or after)._origin_for(str(given.get("api_key") or ""))
        added = Credential(given.get("api_key"), given.get("headers"), origin, sources)
        return replace(after, credentials=(*self.credentials, added))

    def _origin_for(self, key: str) -> str | None:
        """What a key that is given here is for: this place; but one whose form tells another owner is not for a place that
        nobody but `handwork setup` named."""
        named = [self.origins[name].layer.kind for name in ("model", *_OF_A_PLACE) if name in self.origins]
        owners = owners_of(self.environ.get(key.removeprefix("env:"), key).strip())
        if len(owners) == 1 and named and all(kind == "setup" for kind in named):
            return url_origin(owners[0].address(self.environ))
        return self.origin

    def bound(self, origin: str | None) -> Layered:
        """This with the credentials that were given before any place was named bound to `origin`."""
        return replace(
            self,
            credentials=tuple(replace(each, origin=each.origin or origin) for each in self.credentials),
        )

    def settled(self) -> Settled:
        """The settings with what may go to their place, and what the user should know of what may not."""
        chosen = attached(self.credentials, self.origin)
        secrets: dict[str, Any] = {"api_key": chosen.key, "headers": chosen.headers}
        withheld = {name: self._withheld(name) for name, value in secrets.items() if value is None}
        key = {name: value for name, value in secrets.items() if value is not None}
        notices = (*self.notices, *filter(None, withheld.values()))
        origins = {name: chosen.sources[name] for name in key if name in chosen.sources}
        return Settled(
            LLMSettings(**self.values, **key),
            notices,
            withheld.get("api_key", ""),
            origins={**self.origins, **origins},
        )

    def _withheld(self, name: str) -> str:
        """What to say of a secret that was given for another place; '' if none was."""
        target = self.origin
        found = next((each for each in reversed(self.credentials) if _given(each, name)), None)
        if found is None or found.origin is None or target == LOCAL:  # nobody needs a key in this process
            return ""
        source = f" ({found.sources[name]})" if name in found.sources and name == "api_key" else ""
        how = "to use one there, give it together with that model or base_url"
        if self._get("base_url") and name == "api_key":
            how = HOW_TO_GIVE
        return (
            f"{name} is not used for {self._get('model') or target}: it was given for {found.origin}{source}, and this is "
            f"{target}; {how}"
        )

    def _get(self, name: str) -> str:
        return str(self.values.get(name, ""))

    def _moved(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The values that still hold under `given`: a base URL does not follow to a model that names another provider than the
        one there, which a place without a name is to every provider. What `handwork setup` chose is replaced without a word."""
        values = dict(self.values)
        old, new = self._get("model"), str(given.get("model", ""))
        if not old or not new or old == new:
            return values, self.notices
        at = provider_at(base_url) if (base_url := self._get("base_url")) else None
        before = provider_name(old, base_url, self._get("api_type")) or (at.name if at else "")
        if provider_name(new, base_url) in ("", before):
            return values, self.notices
        dropped = [name for name in _OF_A_PLACE if values.pop(name, None) and name not in given]
        dropped = [name for name in dropped if name not in self.origins or self.origins[name].layer.kind != "setup"]
        told = f"{', '.join(dropped)} of {old} is not used for {new}: that is another provider"
        return values, (*self.notices, told) if dropped else self.notices


def _given(credential: Credential, name: str) -> bool:
    return bool(credential.key if name == "api_key" else credential.headers)


class LLMTables:
    """All [llm] tables while the sources are read, each source over the ones before it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._tables = {"default": Layered(environ)}

    def add(self, own: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]], layer: Layer) -> None:
        """One source: its [llm], which also goes over every [llm.<name>] so far, and its own [llm.<name>]."""
        # a key of [llm] is for [llm]'s place, whichever places the named tables have
        origins = {name: layer.origin(("llm", name)) for name in own}
        default = self._tables["default"].over(own, origins=origins)
        self._tables = {
            name: default
            if name == "default"
            else table.over(self._given_to(name, own), beside=default, origins=origins)
            for name, table in self._tables.items()
        }
        for name, given in named.items():
            before = self._tables.get(name.lower(), replace(default, notices=()))
            origins = {key: layer.origin(("llm", name, key)) for key in given}
            self._tables[name.lower()] = before.over(given, origins=origins)

    def _given_to(self, name: str, own: Mapping[str, Any]) -> Mapping[str, Any]:
        """What of an [llm] goes over a named table: not the choice of a model, if it is for [llm.vision] and that has made its
        own, as it is there for models that see less (`--model` names the agent's)."""
        table, default = self._tables[name].values, self._tables["default"].values
        if name != "vision" or all(table.get(key) == default.get(key) for key in ("model", "base_url")):
            return own
        return {key: value for key, value in own.items() if key not in _CHOICE}

    def settled(self) -> dict[str, Settled]:
        """What is known of every table; a notice of [llm] is not repeated in the others, whose own begin with their name."""
        origin = self._tables["default"].origin
        settled = {name: table.bound(origin).settled() for name, table in self._tables.items()}
        said = settled["default"].notices
        for name, each in settled.items():
            if name != "default":
                own = tuple(f"[llm.{name}] {text}" for text in dict.fromkeys(each.notices) if text not in said)
                settled[name] = replace(each, notices=own)
        return settled


def with_model(settings: LLMSettings, model: str, environ: Mapping[str, str]) -> Settled:
    """Complete settings with another model over them, as one more layer would have it."""
    return Layered.of(settings, environ).over({"model": model}).settled()
