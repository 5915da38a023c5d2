"""What the system says of a process."""

import subprocess
import sys

import pytest

from diglot.engines.llamacpp.vitals import ended
from tests.serving import until


@pytest.mark.skipif(sys.platform == "win32", reason="nobody says it there")
def test_the_end_of_a_child_is_seen_before_anybody_waits_for_it_and_after() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert not ended(child.pid)
        child.kill()
        until(lambda: ended(child.pid))
        assert child.wait() < 0  # It was not taken from whoever waits.
        assert ended(child.pid)
