"""Which addresses are public, and what the others are."""

from __future__ import annotations

import pytest

from handwork.sandbox.network.addresses import unusual


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "192.0.1.1", "172.32.0.1", "100.128.0.1", "223.255.255.255", "2001:4860:4860::8888", "2606:4700::1111",
     "64:ff9b::808:808", "2002:808:808::1", "::ffff:8.8.8.8", "2a00::5efe:808:808"],
)  # fmt: skip
def test_addresses_of_the_public_net_are_nothing_unusual(address: str) -> None:
    assert unusual(address) == ""


@pytest.mark.parametrize(
    ("what", "addresses"),
    [
        ("this machine itself", ["127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::", "::1", "::ffff:127.0.0.1",
         "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1", "2a00::5efe:7f00:1", "2a00::200:5efe:7f00:1"]),
        ("a private network", ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.100.100.200",
         "fd00::1", "fd00:ec2::254", "fc00::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:c0a8:101::1"]),
        ("the local link, where clouds hand out their keys",
         ["169.254.169.254", "168.63.129.16", "fe80::1", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"]),
        ("a range for special use", ["192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
         "255.255.255.255", "240.0.0.1", "192.88.99.1", "ff02::1", "2001:db8::1", "2001::1", "3fff::1", "100::1", "5f00::1",
         "64:ff9b:1::1", "4000::1", "2620:4f:8000::1"]),
    ],
)  # fmt: skip
def test_every_other_address_is_said_to_be_what_it_is(what: str, addresses: list[str]) -> None:
    assert {address: unusual(address) for address in addresses} == dict.fromkeys(addresses, what)
