"""The budget: how many tokens each part of a compaction may take.

Everything is a share of the context window, less what the conversation carries anyway (system text, tools,
user messages). The shares leave room to work in: a result close to the threshold would be compacted again
at once, for ever. Tokens are counted by the engine; characters are only used where a schema needs them.

Invariant: whatever the sizes, prose, record and retained items together take at most 45 % of the window, and at
most 60 % of what they stand for, but for what the last compaction took, and for a conversation that is small: that may
gain nothing, since nothing is lost.
"""

from __future__ import annotations

import msgspec

_WHOLE = 0.45
_RETAINED = 0.4
_RETAINED_OF_WHOLE = 0.4
_CHOSEN_OF_WHOLE = 0.03125  # A small model's choice is little better than chance; the record quotes what tells most.
_LEAST = 0.12
_FILLED = 0.6  # Clients compact from 70 % on: a result that fills as much would be compacted again at once.
_GAIN = 0.6
_SMALL = 0.5  # Of the window. So far from full that one compaction cannot bring on the next.
_SMALL_WHOLE = 0.08
_PROSE_LEAST = 64
_PROSE_CHARACTERS = (256, 4000)
ANSWER_OVERHEAD = 192
"""Tokens of an answer that are not prose: the braces, the names, the chosen items."""
_MOST_OFFERS = 16
_TOKENS_PER_OFFER = 2000  # An offer takes about 25 tokens that are not in the cache.


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens, but for `prose`, which is in characters, and `offers`, which counts items.

    `whole` is for summary and retained items together, `retained` the most of it that retained items may take,
    `chosen` the most that those of them may take that the model has chosen, `prose` how long the model's own text may become, `answer` what the model may generate to write it, `offers` how many items it may choose from,
    `small` whether there is so much room left that nothing need be gained.
    """

    whole: int
    retained: int
    chosen: int
    prose: int
    answer: int
    offers: int
    small: bool


def budget_of(*, window: int, fixed: int, before: int, stood: int = 0, threshold: int | None = None) -> Budget:
    """Return the budget for a window, where `fixed` of the `before` tokens of the prompt stay in it anyway.

    `stood` is how many the summary of the last compaction takes with what must stay beside it: as much may be written
    again, so that compacting twice loses nothing. `threshold` is the fill at which the next compaction would come, where it is known.
    """
    full = min(window, threshold or window)
    room = max(int(full * _LEAST), min(int(full * _WHOLE), int(full * _FILLED) - fixed))
    gain = max(stood, int((before - fixed) * _GAIN))
    small = fixed < before <= full * _SMALL
    if small:
        gain = max(gain, int(full * _SMALL_WHOLE))
    whole = max(0, min(room, gain))
    shortest, longest = _PROSE_CHARACTERS
    prose = max(_PROSE_LEAST, min(longest, max(min(shortest, full // 8), full // 10), whole))
    return Budget(
        whole=whole,
        retained=int(min(whole * _RETAINED_OF_WHOLE, full * _RETAINED)),
        chosen=int(whole * _CHOSEN_OF_WHOLE),
        prose=prose,
        answer=prose + ANSWER_OVERHEAD,
        offers=min(_MOST_OFFERS, before // _TOKENS_PER_OFFER),
        small=small,
    )


def shorter(characters: int, attempt: int) -> int:
    """Return how many characters the prose may have at an attempt, counted from 0, where the first may have so many.

    A text of few characters can be of many tokens. The tokens stay the same and the characters become a
    quarter each time, so that an answer that was cut off cannot be cut off for ever.
    """
    return max(_PROSE_LEAST, characters >> (2 * attempt))
