"""All checks of the doctor, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from handwork.cli.doctor import installation, machine, mcp_servers, models, network, places, screens, storage, tools
from handwork.cli.doctor.finding import Check, blocking

CHECKS: Sequence[Check] = (
    Check("python", "Python", blocking(machine.python), essential=True),
    Check("handwork", "Python", blocking(installation.installation), essential=True, seconds=25.0),
    Check("system", "Machine", blocking(machine.system), essential=True),
    Check("programs", "Machine", blocking(machine.programs)),
    Check("clock", "Machine", blocking(machine.clock)),
    Check("sandbox", "Tools", tools.sandbox, essential=True, seconds=12.0),
    Check("kernel", "Tools", tools.kernel, essential=True, seconds=20.0),
    Check("model", "Model", models.model, seconds=30.0),
    Check("keys", "Keys", models.keys, seconds=40.0),
    Check("servers", "Model servers", blocking(models.servers)),
    Check("mcp", "MCP servers", blocking(mcp_servers.servers)),
    Check("network", "Network", network.network, seconds=10.0),
    Check("home", "Folders", blocking(places.home)),
    Check("answers", "Folders", blocking(places.answers), essential=True),
    Check("workspace", "Folders", blocking(places.workspace)),
    Check("disk", "Disk", blocking(places.disk), essential=True),
    Check("store", "Store", blocking(storage.store), essential=True, seconds=10.0),
    Check("terminal", "Terminal", blocking(screens.terminal)),
)
