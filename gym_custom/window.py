"""Windows for people who watch: one for each canvas, none of which gets in another's way.

The process has but one ``pygame.display``, so this uses ``pygame.Window``. Of the event queue only the close buttons
are taken; keys and the rest stay for the program that runs the environments.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any

from gymnasium.error import DependencyNotInstalled

_open: weakref.WeakSet[Window] = weakref.WeakSet()


@functools.cache
def load_pygame() -> Any:
    """The pygame module, loaded when the first picture is made.

    Raises:
        DependencyNotInstalled: It is missing.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
        import pygame.gfxdraw
    except ImportError as error:
        raise DependencyNotInstalled("pictures need pygame-ce: run `pip install pygame-ce`") from error
    return pygame


class Window:
    """Shows pictures at a steady pace. It opens with the first and stays closed once its user has closed it.

    Args:
        title: What stands above it.
        fps: Pictures a second.

    Attributes:
        dismissed: Whether its user has closed it, or has quit.
    """

    def __init__(self, title: str, fps: float):
        self._title, self._fps = title, fps
        self._window: Any = None
        self._clock: Any = None
        self.dismissed = False

    def show(self, picture: Any) -> None:
        """Shows a surface and waits until its time is over."""
        size = picture.get_size()
        if self._window is None:
            self._open(size)
        elif self._window.size != size:
            self._window.size = size
        self._window.get_surface().blit(picture, (0, 0))
        self._window.flip()
        _dismiss_closed()
        if self._clock is not None:
            self._clock.tick(self._fps)

    def close(self) -> None:
        """Takes it from the screen; the next picture opens it again."""
        self._remove()
        self.dismissed = False

    def _open(self, size: tuple[int, int]) -> None:
        pygame = load_pygame()
        pygame.display.init()
        self._window, self._clock = pygame.Window(self._title, size), pygame.time.Clock()
        _open.add(self)

    def _remove(self) -> None:
        if self._window is not None:
            self._window.destroy()
        self._window = self._clock = None
        _open.discard(self)

    def _dismiss(self) -> None:
        self._remove()
        self.dismissed = True


def _dismiss_closed() -> None:
    """Takes away the windows whose close button was pressed, and all of them on QUIT."""
    pygame = load_pygame()
    pygame.event.pump()
    for event in pygame.event.get((pygame.QUIT, pygame.WINDOWCLOSE)):
        closed = getattr(event, "window", None)
        for window in list(_open):
            if event.type == pygame.QUIT or window._window is closed:
                window._dismiss()
