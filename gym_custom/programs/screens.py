"""Where frames go: a GIF, a video or a window. All take frames of shape (H, W, 3), uint8."""

from __future__ import annotations

import errno
import itertools
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from gym_custom.programs.arguments import WrongArguments, require_folder
from gym_custom.rendering import Palette
from gym_custom.window import load_pygame

_GAP = 6  # pixels between the pictures of a wall
_COLORS = 128  # of each picture of a GIF
_TOLERANCE = 40  # of 255, by which a pixel's channel may be off


class GifFile:
    """Writes frames into an animated GIF with Pillow, when the block is left; also after Ctrl+C, not after errors."""

    widest = 1000  # pixels of a wall: larger GIFs take tens of megabytes

    def __init__(self, path: Path, fps: float):
        try:
            from PIL import Image, ImageChops
        except ImportError as error:
            raise WrongArguments("GIF files need Pillow: pip install pillow") from error
        self._image, self._difference = Image, ImageChops.difference
        self._path, self._fps = path, fps
        self._frames: list[Any] = []
        self._palette: Any = None
        self._last: np.ndarray | None = None
        self._picture: Any = None

    def __enter__(self) -> GifFile:
        return self

    def show(self, frame: np.ndarray) -> bool:
        """Takes one more frame; True as long as more are welcome."""
        if self._last is None or not np.array_equal(frame, self._last):  # equal pictures become one that stays longer
            self._last, self._picture = frame, self._quantize(self._image.fromarray(frame))
        self._frames.append(self._picture)
        return True

    def _quantize(self, picture: Any) -> Any:
        """The picture in few colors; those of the last one that needed new ones, since choosing them takes long."""
        plain = self._image.Dither.NONE
        if self._palette is not None:
            found = picture.quantize(palette=self._palette, dither=plain)
            errors: Any = self._difference(found.convert("RGB"), picture).getextrema()
            if max(high for _, high in errors) <= _TOLERANCE:
                return found
        self._palette = few_colors(picture, _COLORS)
        return picture.quantize(palette=self._palette, dither=plain)

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        if self._frames and kind in (None, KeyboardInterrupt):
            draft = _draft(self._path)
            first, *rest = self._frames
            first.save(draft, save_all=True, append_images=rest, duration=_milliseconds(self._fps), loop=0)
            os.replace(draft, self._path)


def few_colors(picture: Any, count: int, **how: Any) -> Any:
    """A picture of Pillow whose palette has so many colors of another one, the worlds' own exactly.

    Those may fill a dot of a legend alone: too little for Pillow to notice. ``how`` it finds the others are arguments
    of its ``quantize``.
    """
    own = [color for name, color in vars(Palette).items() if name.isupper()]
    found = picture.quantize(count - len(own), dither=0, **how).getpalette()[: 3 * (count - len(own))]
    palette = picture.resize((1, 1)).convert("P")
    palette.putpalette([*itertools.chain(*own), *found])
    return palette


class VideoFile:
    """Writes frames into an MP4 (H.264) with imageio-ffmpeg; also after Ctrl+C, not after errors."""

    widest = 1900

    def __init__(self, path: Path, fps: float):
        try:
            import imageio_ffmpeg
        except ImportError as error:
            raise WrongArguments("MP4 files need imageio-ffmpeg: pip install imageio-ffmpeg") from error
        self._library, self._path, self._fps = imageio_ffmpeg, path, fps
        self._writer: Any = None

    def __enter__(self) -> VideoFile:
        return self

    def show(self, frame: np.ndarray) -> bool:
        """Writes one more frame; True as long as more are welcome."""
        height, width = (side - side % 2 for side in frame.shape[:2])  # the codec wants even sides
        if self._writer is None:
            self._writer = self._library.write_frames(
                str(_draft(self._path)), (width, height), fps=self._fps, macro_block_size=2, quality=8
            )
            self._writer.send(None)
        self._writer.send(np.ascontiguousarray(frame[:height, :width]))
        return True

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        if self._writer is None:
            return
        self._writer.close()
        if kind in (None, KeyboardInterrupt):
            os.replace(_draft(self._path), self._path)
        else:
            _draft(self._path).unlink(missing_ok=True)


def screen_is_there() -> bool:
    """Whether windows can be seen here; pygame's display is ready afterwards."""
    display = load_pygame().display
    display.init()
    return display.get_driver() != "offscreen"


class Window:
    """Shows frames at their pace, until the window is closed or Escape is pressed."""

    widest = 1900

    def __init__(self, title: str, fps: float):
        self._pygame, self._title, self._fps = load_pygame(), title, fps
        self._window: Any = None

    def __enter__(self) -> Window:
        if not screen_is_there():
            print("There is no screen here: --output FILE writes a GIF or an MP4.", file=sys.stderr)
        self._clock = self._pygame.time.Clock()
        return self

    def show(self, frame: np.ndarray) -> bool:
        """Shows one more frame and waits until its time is over; False once the window was closed."""
        pygame = self._pygame
        if self._window is None:
            self._window = pygame.Window(self._title, frame.shape[1::-1])
        pygame.surfarray.blit_array(self._window.get_surface(), frame.transpose(1, 0, 2))
        self._window.flip()
        self._clock.tick(self._fps)
        return not any(
            event.type in (pygame.QUIT, pygame.WINDOWCLOSE)
            or (event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE)
            for event in pygame.event.get()
        )

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        if self._window is not None:
            self._window.destroy()
        self._pygame.display.quit()


Screen = GifFile | VideoFile | Window
FILES: dict[str, type[GifFile] | type[VideoFile]] = {".gif": GifFile, ".mp4": VideoFile}


def open_screen(output: Path | None, title: str, fps: float) -> Screen:
    """The screen for an output path, or a window where there is none.

    Raises:
        ValueError: The path has another suffix.
        WrongArguments: The library for it is not installed.
        OSError: The file cannot be written there.
    """
    if output is None:
        return Window(title, fps)
    if output.suffix.lower() not in FILES:
        raise ValueError(f"the output must end in {' or '.join(FILES)}, not {output.name!r}")
    require_folder(output.parent)  # told now, not after the last episode
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(output))
    return FILES[output.suffix.lower()](output, fps)


def wall(frames: Sequence[np.ndarray], widest: int) -> np.ndarray:
    """Frames of equal size side by side, shrunk where they would be wider than so many pixels."""
    height, width, _ = frames[0].shape
    columns = min(len(frames), max(1, round(math.sqrt(len(frames) * 16 / 9 * height / width))))
    rows = math.ceil(len(frames) / columns)
    columns = math.ceil(len(frames) / rows)  # four are two and two, not three and one
    out = np.full((rows * (height + _GAP) + _GAP, columns * (width + _GAP) + _GAP, 3), Palette.GRID, np.uint8)
    for index, frame in enumerate(frames):
        top, left = (
            place * (side + _GAP) + _GAP for place, side in zip(divmod(index, columns), (height, width), strict=True)
        )
        out[top : top + height, left : left + width] = frame
    return shrink(out, math.ceil(out.shape[1] / widest))


def shrink(frame: np.ndarray, factor: int) -> np.ndarray:
    """A frame whose pixels are the means of squares of factor x factor; what is left over at the edges is lost."""
    if factor == 1:
        return frame
    height, width = (side // factor for side in frame.shape[:2])
    squares = frame[: height * factor, : width * factor].reshape(height, factor, width, factor, 3)
    return squares.mean(axis=(1, 3)).round().astype(np.uint8)


def _draft(path: Path) -> Path:
    """Where a file is written until it is complete."""
    return path.with_name(f".{path.stem}.part{path.suffix}")


def _milliseconds(fps: float) -> int:
    """Duration of a GIF's frame: browsers slow down those below 20 ms."""
    return max(20, round(1000 / fps))
