"""Keep pictures in a file on the disk instead of in memory."""

from __future__ import annotations

import tempfile
import weakref
from dataclasses import dataclass
from os import PathLike

from variegate.video.picture import decode_picture
from variegate.video.reading import Picture


class PictureStore:
    """A temporary file of pictures, in ``folder`` or where the system has such files.

    Where the system can, the file has no name, so that even a process that is killed
    leaves nothing behind.  It is closed when no stored picture is left.
    """

    def __init__(self, folder: str | PathLike[str] | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def add(self, image: Picture) -> StoredPicture:
        """Write a picture at the end of the file, without loss."""
        from variegate.video.storyboard import encode_png

        content = encode_png(image)
        start = self._file.seek(0, 2)
        self._file.write(content)
        return StoredPicture(self, start, len(content))

    def read(self, start: int, size: int) -> Picture:
        """Return the picture at a place in the file."""
        self._file.seek(start)
        image = decode_picture(self._file.read(size))
        assert image is not None  # it was encoded here
        return image


@dataclass(frozen=True, eq=False)
class StoredPicture:
    """The place of a picture in a store."""

    store: PictureStore
    start: int
    size: int

    def read(self) -> Picture:
        """Return the picture: red, green and blue, 0 to 255."""
        return self.store.read(self.start, self.size)
