# SPDX-License-Identifier: Apache-2.0
"""What the user can get wrong: a line that says what, and a hint that says what to change."""


class Fault(ValueError):
    def __init__(self, text, hint=""):
        super().__init__(text)
        self.hint = hint


class TooLarge(Fault):
    """More than a device holds, in this layout or in all of them."""
