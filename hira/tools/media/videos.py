"""Moments of a video as pictures, for models that take pictures only."""

import re
from pathlib import Path
from typing import Any

from hira.core.errors import ToolError
from hira.tools.media.decoding import EXTRA, decodes, open_media
from hira.tools.media.pictures import encode_picture

LONGEST_SIDE = 1024
LARGEST = 50_000_000
"""Pixels of a frame that is decoded."""
_PASSED = 600
"""Frames decoded to come from where the file can be entered to the moment that is asked for."""
_SHARE = re.compile(r"(\d{1,3})/(\d{1,3})")
_TIME = re.compile(r"(?:(\d+):)?(\d+(?:\.\d+)?)")


def moment(path: Path, at: str) -> str:
    """The picture at a moment of a video: seconds, minutes and seconds as `1:30`, or the middle of a share as `3/8`."""
    if not decodes():
        raise ToolError(f"moments of {path.name} cannot be shown as pictures: {EXTRA}")
    with open_media(path, "video") as container:
        if not container.streams.video:
            raise ToolError(f"{path.name} holds no pictures")
        stream = container.streams.video[0]
        size = stream.codec_context
        if size.width * size.height > LARGEST:
            raise ToolError(f"{path.name} is too large to read: {size.width} x {size.height} pixels")
        image = _nearest(container, stream, _second(path, at, _length(container, stream))).to_image()
        image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        return encode_picture(image)


def _length(container: Any, stream: Any) -> float:
    """Seconds, 0 where the file does not say."""
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / 1_000_000 if container.duration else 0.0


def _second(path: Path, at: str, length: float) -> float:
    at = at.strip()
    if (share := _SHARE.fullmatch(at)) and int(share[2]):
        return length * (min(int(share[1]), int(share[2])) - 0.5) / int(share[2])
    if not (time := _TIME.fullmatch(at)):
        raise ToolError(f"name a moment of {path.name} in seconds, such as {path.name}#second=12")
    second = int(time[1] or 0) * 60 + float(time[2])
    if length and second > length:
        raise ToolError(f"{path.name} is only {length:.1f} seconds long")
    return second


def _nearest(container: Any, stream: Any, second: float) -> Any:
    """The first frame that is shown at that second or later; the last one that was found if there is none."""
    if second > 0 and stream.time_base:
        start = stream.start_time or 0
        container.seek(start + int(second / stream.time_base), stream=stream, backward=True)
    found = None
    for passed, frame in enumerate(container.decode(stream)):
        found = frame
        if frame.time is None or frame.time >= second or passed >= _PASSED:
            break
    if found is None:
        raise ToolError("no picture of the video can be read there")
    return found
