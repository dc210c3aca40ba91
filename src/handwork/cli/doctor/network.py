"""The way out: proxies and certificates."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from handwork.cli.doctor.finding import Finding, Ground
from handwork.config.user_proxy import proxy_for
from handwork.errors import ConfigError

_GROUP = "Network"
_PROXIES = ("https_proxy", "http_proxy", "all_proxy")
_OTHERS_CA = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
"""Where other programs look for certificates: a company's machine often has one of these and not ours."""
_CONNECT_SECONDS = 3.0
_SOME_PROVIDER = "https://api.openai.com/v1"


async def network(ground: Ground) -> list[Finding]:
    """What the environment says about the way out; a proxy is only reached with --online."""
    environ = ground.settings.environ
    return [*await _proxy(environ, online=ground.online), *_certificates(environ)]


async def _proxy(environ: Mapping[str, str], *, online: bool) -> list[Finding]:
    given = {name: value for each in _PROXIES for name in (each, each.upper()) if (value := environ.get(name))}
    if not given:
        return [Finding("network.proxy", _GROUP, "ok", "no proxy is set: providers are reached directly")]
    found = []
    for each in _PROXIES:
        low, high = environ.get(each), environ.get(each.upper())
        if low and high and low != high:
            text = f"{each} and {each.upper()} name different proxies; {each} is used"
            found.append(
                Finding("network.proxy.twice", _GROUP, "warning", text, f"unset {each.upper()}, or make them equal")
            )
    try:
        proxy = proxy_for(_SOME_PROVIDER, environ)
    except ConfigError as error:
        names = ", ".join(given)
        fix = error.hint or f"look at {names}: an address is http://host:port"
        return [*found, Finding("network.proxy", _GROUP, "problem", error.what, fix)]
    bypass = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    beside = f"; directly: {bypass}" if bypass else ""
    if proxy is None:
        text = f"{', '.join(given)} set, but not used for providers{beside}"
        return [*found, Finding("network.proxy", _GROUP, "ok", text)]
    parts = urlsplit(proxy)
    where = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    if online and (why := await _why_not_reached(str(parts.hostname), int(where.rpartition(":")[2]))):
        text = f"the proxy {where} cannot be reached: {why}"
        fix = f"check {', '.join(given)}, or unset them if there is no proxy here"
        return [*found, Finding("network.proxy", _GROUP, "problem", text, fix)]
    password = ", with a password" if parts.password else ""
    return [*found, Finding("network.proxy", _GROUP, "ok", f"proxy {where}{password}{beside}")]


async def _why_not_reached(host: str, port: int) -> str:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return f"no connection within {_CONNECT_SECONDS:g} s"
    except OSError as error:
        return (os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)).lower()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return ""


def _certificates(environ: Mapping[str, str]) -> list[Finding]:
    own = environ.get("SSL_CERT_FILE")
    if own:
        return [_bundle(Path(own))]
    others = [f"{name}={environ[name]}" for name in _OTHERS_CA if environ.get(name)]
    found = []
    if others and not environ.get("SSL_CERT_DIR"):
        text = f"certificates are set for other programs only ({', '.join(others)})"
        fix = f"if your network has a CA of its own: export SSL_CERT_FILE={others[0].partition('=')[2]}"
        found.append(Finding("network.ca.others", _GROUP, "warning", text, fix))
    paths = ssl.get_default_verify_paths()
    folder = Path(environ.get("SSL_CERT_DIR") or paths.capath or "/nowhere")
    with contextlib.suppress(OSError):
        if (paths.cafile and Path(paths.cafile).is_file()) or any(folder.iterdir()):
            where = paths.cafile or folder
            return [*found, Finding("network.ca", _GROUP, "ok", f"certificates of the system ({where})")]
    text = "this system has no certificates of authorities: no provider's https can be trusted"
    fix = "install them (`apt-get install ca-certificates`), or name a file in SSL_CERT_FILE"
    return [*found, Finding("network.ca", _GROUP, "warning", text, fix)]


def _bundle(file: Path) -> Finding:
    fix = "let SSL_CERT_FILE name a file of certificates in PEM form, or unset it"
    try:
        context = ssl.create_default_context(cafile=str(file))
    except OSError as error:  # SSLError is one
        why = error.strerror or str(error)
        text = f"SSL_CERT_FILE names {file}, which holds no certificates that can be read: {why}"
        return Finding("network.ca", _GROUP, "problem", text, fix)
    held = context.get_ca_certs()
    expired = sum(1 for each in held if _expired(each))
    if not held or expired == len(held):
        text = f"SSL_CERT_FILE names {file}, whose {len(held)} authorities have all expired or are none"
        return Finding("network.ca", _GROUP, "problem", text, fix)
    count = f"{len(held)} authorit{'y' if len(held) == 1 else 'ies'}"
    return Finding("network.ca", _GROUP, "ok", f"SSL_CERT_FILE: {count} in {file}, in place of the system's")


def _expired(certificate: Mapping[str, object]) -> bool:
    until = certificate.get("notAfter")
    return isinstance(until, str) and ssl.cert_time_to_seconds(until) < time.time()
