"""The doors to the human are callables: what was meant for a setting of the same name is refused, with the way to set it."""

from __future__ import annotations

from handwork.schema import Mode

_MODES = {mode.value for mode in Mode}
_IN_SETTINGS = 'load_settings(overrides={{"policy": {{"approve": "{}"}}}})'


def check_doors(ask: object, approve: object) -> None:
    """Raises TypeError for a door that cannot be called: the mode of a policy, which is called `approve` in files, is none."""
    if ask is not None and not callable(ask):
        raise TypeError(f"ask is an async function that answers a Question with a text, not {ask!r}")
    if approve is None or callable(approve):
        return
    way = ""
    if (mode := str(approve)) in _MODES:
        way = f": the mode is a setting, settings={_IN_SETTINGS.format(mode)}, or [policy] approve in the configuration"
    raise TypeError(
        f"approve is an async function that answers an ApprovalRequest with an Approval, not {approve!r}{way}"
    )
