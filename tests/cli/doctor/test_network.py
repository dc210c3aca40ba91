"""Proxies and certificates, as the environment names them."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
from tests.cli.doctor.conftest import MakeGround

from handwork.cli.doctor.finding import Finding
from handwork.cli.doctor.network import network


async def _found(ground: MakeGround, *, online: bool = False, **environ: str) -> dict[str, Finding]:
    return {each.id: each for each in await network(ground(online=online, **environ))}


def _system_certificates() -> str:
    usual = (ssl.get_default_verify_paths().cafile, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/cert.pem")
    found = next((file for file in usual if file and Path(file).is_file()), None)
    return found or pytest.skip("this machine has no certificates")


async def test_a_proxy_is_named_without_its_password(ground: MakeGround) -> None:
    found = await _found(ground, HTTPS_PROXY="http://jo:s3cret@proxy.example:3128", NO_PROXY="localhost")
    assert found["network.proxy"].status == "ok"
    assert "proxy.example:3128, with a password; directly: localhost" in found["network.proxy"].text
    assert "s3cret" not in str(found)


@pytest.mark.parametrize("proxy", ["socks5://proxy:1080", "http://proxy:port", "proxy example", "http://"])
async def test_a_proxy_that_is_no_address_is_a_problem(proxy: str, ground: MakeGround) -> None:
    found = (await _found(ground, HTTPS_PROXY=proxy))["network.proxy"]
    assert found.status == "problem"
    assert found.fix


async def test_a_dead_proxy_is_found_with_online_only(ground: MakeGround) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert (await _found(ground, HTTPS_PROXY=proxy))["network.proxy"].status == "ok"
        found = (await _found(ground, online=True, HTTPS_PROXY=proxy))["network.proxy"]
    assert found.status == "problem"
    assert "refused" in found.text
    assert "HTTPS_PROXY" in found.fix


async def test_two_spellings_that_differ_are_told(ground: MakeGround) -> None:
    found = await _found(ground, HTTPS_PROXY="http://a:1", https_proxy="http://b:2")
    assert found["network.proxy.twice"].status == "warning"
    assert "b:2" in found["network.proxy"].text


async def test_a_certificate_file_that_holds_none_is_a_problem(ground: MakeGround, tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_text("no certificate\n")
    for file in (empty, tmp_path / "none.pem", tmp_path):
        found = (await _found(ground, SSL_CERT_FILE=str(file)))["network.ca"]
        assert found.status == "problem"
        assert "SSL_CERT_FILE" in found.fix


async def test_a_certificate_file_is_counted(ground: MakeGround) -> None:
    found = (await _found(ground, SSL_CERT_FILE=_system_certificates()))["network.ca"]
    assert found.status == "ok"
    assert "authorit" in found.text


async def test_certificates_that_only_other_programs_know_are_told(ground: MakeGround) -> None:
    found = await _found(ground, REQUESTS_CA_BUNDLE="/company/ca.pem")
    assert found["network.ca.others"].fix.endswith("export SSL_CERT_FILE=/company/ca.pem")
