# SPDX-License-Identifier: Apache-2.0
"""What run_mutants.py takes for a kill, and what it does not. Run as a program."""

import math
import pathlib
import subprocess
import unittest

import run_mutants
from run_mutants import Mutant, Verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]


def mutant(**fields):
    return Mutant(**{"name": "m", "file": "f.h", "find": "a + b", "replace": "a - b", "check": "scores", "run": "--rows 2",
                     **fields})


class Matching(unittest.TestCase):
    def test_white_space_stands_for_any(self):
        self.assertEqual(run_mutants.changed_text(mutant(), "x = a\n   +  b;")[0], "x = a - b;")

    def test_text_that_occurs_other_than_once_is_refused(self):
        for text, times in (("x = a * b;", 0), ("a + b + a + b", 2)):
            changed, fault = run_mutants.changed_text(mutant(), text)
            self.assertIsNone(changed)
            self.assertEqual(fault, f"its text occurs {times} times in f.h")

    def test_every_mutant_of_the_table_matches_its_file_once(self):
        _, mutants = run_mutants.read_table(ROOT / "cases/mutants.toml")
        self.assertGreaterEqual(len(mutants), 60)
        for m in mutants:
            with self.subTest(m.name):
                changed, fault = run_mutants.changed_text(m, (ROOT / m.file).read_text())
                self.assertEqual(fault, "")
                self.assertNotEqual(changed, (ROOT / m.file).read_text())


class Judging(unittest.TestCase):
    def fault(self, verdict, **fields):
        return run_mutants.judged(mutant(**fields), verdict)

    def test_the_named_check_kills_whatever_else_fails(self):
        self.assertEqual(self.fault(Verdict("", ["set", "scores"], 1.0, 0)), "")

    def test_no_failure_survives(self):
        self.assertEqual(self.fault(Verdict("", [], 0.0, 2)), "SURVIVES")

    def test_another_check_is_no_kill(self):
        self.assertEqual(self.fault(Verdict("", ["set", "order"], 0.0, 0)), "killed by set, order, not by scores")

    def test_a_run_that_could_not_be_judged_is_no_kill(self):
        self.assertEqual(self.fault(Verdict("status 2: no file", ["scores"], 0.0, 0)), "no verdict: status 2: no file")

    def test_a_least_error_holds_for_every_case(self):
        large = {"least_error": 1e29}
        self.assertEqual(self.fault(Verdict("", ["scores"], math.inf, 0), **large), "")
        self.assertEqual(self.fault(Verdict("", ["scores"], 1e30, 1), **large), "1 cases pass")
        self.assertEqual(self.fault(Verdict("", ["scores"], 0.5, 0), **large), "the least score error of a case is 0.5")

    def test_failed_checks_are_read_from_the_table_that_ends_a_run(self):
        table = ("check           made  passed  failed skipped  untested  mistrusted\n"
                 "raw_key          400      39       1       0         0           0\n"
                 "score tails        0       0       0       0        40           0\n")
        for status, text, failed in ((1, table, ["raw_key"]), (1, "", ["crash"]), (0, "", [])):
            result = subprocess.CompletedProcess([], status, stdout=text)
            self.assertEqual(run_mutants.failed_or_crash(result), failed)


if __name__ == "__main__":
    unittest.main()
