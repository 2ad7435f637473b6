"""The line that fixes a dimension, from what torch logs."""

from __future__ import annotations

import logging

from onnxproof.artifact.specialised import LOG, listen

MADE = "create_symbol s{n} = 4 for L['leaves'][{n}].size()[{dim}] [2, int_oo]"


def test_the_running_line_is_noted_for_the_input_and_dimension():
    log = logging.getLogger(LOG)
    before = (log.handlers, log.level, log.propagate)
    with listen() as heard:
        log.info(MADE.format(n=0, dim=1))
        log.info(MADE.format(n=1, dim=0))
        log.info("eval Eq(s0, 4) [guard added]")
        log.info("eval Eq(s0, s1) [guard added]")  # of two sizes none is fixed
        log.info("eval Eq(s7, 4) [guard added]")  # nobody's
        log.debug("set_replacement s1 = 4 (range)")
    assert list(heard.lines) == [(0, 1)]
    assert heard.lines[0, 1].file == __file__
    assert (log.handlers, log.level, log.propagate) == before


def test_a_replacement_fixes_too_and_the_first_line_stays():
    log = logging.getLogger(LOG)
    with listen() as heard:
        log.info(MADE.format(n=1, dim=0))
        log.info("set_replacement s1 = 4 (range)")
        first = heard.lines[1, 0]
        log.info("eval Eq(s1, 4) [again]")
    assert heard.lines == {(1, 0): first}
