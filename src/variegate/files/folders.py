"""Find files in folders by their suffixes, and read them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path


def files_below(folder: Path, suffixes: Collection[str] = ()) -> list[Path]:
    """Return the files in a folder and its subfolders, or those with suffixes, sorted.

    Hidden files and folders are left out; suffixes are lower case, such as ".pdf".
    """
    return sorted(
        file
        for file in folder.rglob("*")
        if (not suffixes or file.suffix.lower() in suffixes)
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    )


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; errors say if it is missing, or a folder."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    return path.read_bytes()


_GIVE_ENCODING = (
    "if the file is in another encoding, give it, for example --encoding latin-1"
)


def decode(
    data: bytes, name: str, encoding: str = "utf-8", remedy: str = _GIVE_ENCODING
) -> str:
    """Return the text in the bytes of a file, without a byte order mark.

    ValueErrors call the file ``name``, and those of wrong bytes end in ``remedy``.
    """
    wide = encoding.lower().replace("-", "").startswith(("utf16", "utf32"))
    if b"\0" in data and not wide:
        raise ValueError(f"{name} is not a text file: it has zero bytes")
    try:
        text = data.decode(encoding)
    except LookupError as error:
        raise ValueError(
            f"unknown encoding {encoding!r}: use utf-8 or latin-1, for example"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not in {encoding}: byte {error.start} "
            f"(0x{data[error.start]:02x}) cannot be read; {remedy}"
        ) from error
    return text.removeprefix("\ufeff")


def read_text(
    path: str | Path, encoding: str = "utf-8", remedy: str = _GIVE_ENCODING
) -> str:
    """Return the text of a file; arguments as for :func:`decode`."""
    return decode(read_bytes(Path(path)), str(path), encoding, remedy)
