import struct
from pathlib import Path

import pytest

from cotrail.engines.language_models.catalogue import smollm2_path
from cotrail.engines.language_models.model_files import files_lack, gguf_metadata, gguf_template
from cotrail.errors import InputError, NotInstalledError


@pytest.fixture(scope="module")
def smollm2() -> Path:
    try:
        return smollm2_path()
    except NotInstalledError as error:
        pytest.skip(str(error))


def test_a_file_says_its_template_and_its_control_tokens(smollm2: Path) -> None:
    metadata = gguf_metadata(smollm2)
    assert (metadata.bos, metadata.eos) == ("<|im_start|>", "<|im_end|>")
    assert metadata.chat_template is not None
    assert metadata.chat_template.startswith("{% for message in messages %}")
    assert metadata.chat_template.endswith("{% endif %}")
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= set(metadata.controls)
    assert not {"<", "the"} & set(metadata.controls)


def test_a_file_that_is_missing_damaged_or_of_another_format_is_named(smollm2: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.gguf can't be read"):
        gguf_metadata(tmp_path / "gone.gguf")
    (other := tmp_path / "other.gguf").write_text("a text")
    with pytest.raises(InputError, match=r"other\.gguf is no GGUF file, or damaged: it doesn't begin with GGUF"):
        gguf_metadata(other)
    (cut := tmp_path / "cut.gguf").write_bytes(smollm2.read_bytes()[:100_000])
    with pytest.raises(InputError, match=r"cut\.gguf is no GGUF file, or damaged"):
        gguf_metadata(cut)
    head = smollm2.read_bytes()[:24]
    (wild := tmp_path / "wild.gguf").write_bytes(head + b"\xff" * 8)
    with pytest.raises(InputError, match=r"wild\.gguf is no GGUF file, or damaged"):
        gguf_metadata(wild)


def test_control_tokens_have_their_ids(smollm2: Path) -> None:
    controls = gguf_metadata(smollm2).controls
    assert (controls["<|endoftext|>"], controls["<|im_start|>"], controls["<|im_end|>"]) == (0, 1, 2)


def test_a_file_without_a_template_lacks_conversations_and_tools(smollm2: Path, tmp_path: Path) -> None:
    (base := tmp_path / "base.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    assert gguf_template(base, {}) is None
    assert files_lack(base, "scores") is None
    assert "no chat template" in (files_lack(base, "turns") or "")
    assert files_lack(smollm2, "turns") is None
    assert files_lack(smollm2, "continue") is None
    assert "isn't shown tools" in (files_lack(smollm2, "tools") or "")
