#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants the faults of cases/mutants.toml one by one and sees each caught by the check that it names.

A mutant is one text of a source file replaced by another. Its translation unit is compiled again (the changed file in a
folder that comes first among the include folders; the source tree is only read), the CPU candidate is linked from it and
from the objects of the build, and check_topk judges that candidate with the mutant's arguments. A mutant of
kernels/layout.h may name a layout test instead, which is then compiled against the changed header. One that names "race"
is compiled as the tsan preset has it, and ThreadSanitizer, which takes a GPU's threads and barriers for what they are, must
report a data race; the program that judges stays the uninstrumented one.

Before any mutant, the candidate without faults must pass every command line that the mutants use: what fails by itself
kills nothing. A mutant fails the run if it survives, does not build, matches its file other than once, is killed by other
checks than the one it names, or leaves no verdict.

Needs Python 3.11, nothing else. See cases/mutants.toml for the fields of the table.
"""

import argparse
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import tomllib

ARMS = {"base": "kernels/base/base_arm.cpp", "head": "kernels/head/head_arm.cpp"}
LAYOUT_TEST = "tests/kernels/layout_test.cpp"
CANDIDATE = "lib/exact_topk_cpu.so"
LAYOUT_PROGRAM = "tests/kernels_layout_test"
RACE = "race"  # the check of mutants that the race detector is to kill
TIMEOUT = 600  # seconds of one program, many times what any takes

# Mutants are compiled to be run once: optimised enough to be run, without debug information.
REPLACED_FLAGS = {"-O0", "-O1", "-O2", "-O3", "-g", "-g1", "-Werror"}


class Stop(Exception):
    """The run cannot be made: one sentence."""


@dataclasses.dataclass
class Mutant:
    """One fault, as the table has it."""

    name: str
    file: str  # that is changed, from the root
    find: str  # text that occurs once, any white space standing for any
    replace: str  # what stands there instead
    check: str  # that must fail: one of check_topk's, or a layout test (Suite.Test)
    run: str = ""  # arguments of check_topk
    schedules: int = 0  # random schedules to try until one shows it; 0: the default one must
    least_error: float = 0.0  # every case must fail, with at least this score error

    @property
    def layout(self):
        """Whether a layout test is to kill it."""
        return not self.run

    @property
    def race(self):
        """Whether the race detector is to kill it."""
        return self.check == RACE

    def unit(self):
        """The translation unit that is compiled again."""
        if self.layout:
            return LAYOUT_TEST
        if self.file.endswith(".cpp"):
            return self.file
        for room, unit in (("kernels/base/", ARMS["base"]), ("kernels/head/", ARMS["head"])):
            if self.file.startswith(room):
                return unit
        words = shlex.split(self.run)
        arm = words[words.index("--arm") + 1] if "--arm" in words else "base"
        if arm not in ARMS:
            raise Stop(f"{self.name}: --arm {arm} does not say which arm to build")
        return ARMS[arm]


@dataclasses.dataclass
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    fault: str  # why it fails the run; empty: killed as it should be
    killers: list[str]  # checks that failed
    schedules: int  # that were run
    seconds: float


def command_output(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Stop(f"{shlex.join(command)} failed: {result.stderr.strip()}")
    return result.stdout


class Build:
    """A build of the source tree: how its programs are compiled and linked."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        entries = json.loads((folder / "compile_commands.json").read_text())
        self.compile = {}  # by source file from the root: command, and the object that it makes
        for entry in entries:
            words = shlex.split(entry["command"])
            source = str(pathlib.Path(entry["file"]).relative_to(root))
            self.compile[source] = (words, words[words.index("-o") + 1])

    def link_command(self, target):
        """The words that link a target, without what else its rule does (`: && LINK && ...`)."""
        last = command_output("ninja", "-C", str(self.folder), "-t", "commands", target).splitlines()[-1]
        return shlex.split(last.split("&&")[1])

    def make(self, unit, overlay, target, output):
        """Compiles `unit` with `overlay` before the source tree and links `target` to `output`; what the compiler says
        where it fails, else ''."""
        words, made = self.compile[unit]
        source = overlay / unit if (overlay / unit).exists() else self.root / unit
        object_file = output.parent / "mutant.o"
        command = []
        for word in words[: words.index("-o")]:
            if word not in REPLACED_FLAGS:
                command.append(word)
            if word == f"-I{self.root}":
                command.insert(-1, f"-I{overlay}")
        command += ["-O1", "-w", "-o", str(object_file), "-c", str(source)]
        link = self.link_command(target)
        link[link.index("-o") + 1] = str(output)
        # First of all objects: of functions that several define (templates, inline ones), the linker takes the first.
        first = next(i for i, word in enumerate(link) if word.endswith(".o"))
        link = link[:first] + [str(object_file)] + [word for word in link[first:] if word != made]
        for step in (command, link):
            result = subprocess.run(step, cwd=self.folder, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                return result.stderr.strip() or f"{step[0]} failed"
        return ""


@dataclasses.dataclass
class Verdict:
    """What one run of a program says."""

    error: str  # the run says nothing, and why
    failed: list[str]  # checks or tests that failed
    least_error: float  # the smallest score error of a failed case, infinite where the candidate's is not finite
    passed_cases: int  # cases without a fault


def run_program(command, folder, **environment):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False,
                              timeout=TIMEOUT, env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return None


# A line of the table of checks that check_topk ends with: name, made, then cases passed, failed, skipped ...
CHECK_LINE = re.compile(r"^(\S.*?)\s+\d+\s+\d+\s+(\d+)\s+\d+\s+\d+\s+\d+$", re.MULTILINE)


def failed_checks(text):
    return [name for name, count in CHECK_LINE.findall(text) if int(count) > 0]


class Judge:
    """Runs check_topk and the layout test."""

    def __init__(self, build, launch):
        self.build, self.launch = build, shlex.split(launch)

    def command(self, candidate, arguments, schedule):
        words = shlex.split(arguments)
        if not {"--stage", "--geometry"} & set(words):
            words = self.launch + words
        command = [str(self.build.folder / "bin/check_topk"), "--candidate", str(candidate), "--allow-mistrusted", *words]
        return command + (["--schedule", schedule] if schedule else [])

    def race(self, candidate, arguments, schedule):
        """ThreadSanitizer's own program is `candidate` alone: its runtime comes first, and stops at the first race."""
        result = run_program(self.command(candidate, arguments, schedule), self.build.root,
                             LD_PRELOAD=command_output("g++", "-print-file-name=libtsan.so").strip(),
                             TSAN_OPTIONS="halt_on_error=1:ignore_noninstrumented_modules=1")
        if result is None:
            return Verdict(f"no end within {TIMEOUT} s", [], 0, 0)
        if "WARNING: ThreadSanitizer: data race" in result.stderr:
            return Verdict("", [RACE], 0, 0)
        if result.returncode not in (0, 1):
            last = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]
            return Verdict(f"status {result.returncode}: {''.join(last)}", [], 0, 0)
        return Verdict("", failed_checks(result.stdout), 0, 0)

    def check(self, candidate, arguments, schedule, report):
        report.unlink(missing_ok=True)
        result = run_program([*self.command(candidate, arguments, schedule), "--json", str(report)], self.build.root)
        if result is None:
            return Verdict(f"no end within {TIMEOUT} s", [], 0, 0)
        if not report.exists() or result.returncode not in (0, 1):
            last = (result.stderr.strip() or result.stdout.strip()).splitlines()[-1:]
            return Verdict(f"status {result.returncode}: {''.join(last)}", [], 0, 0)
        cases = json.loads(report.read_text())
        if cases["verdict"] == "error":
            return Verdict(cases.get("error", "error"), [], 0, 0)
        failed = failed_checks(result.stdout)
        errors = [case["max_score_error"] for case in cases["cases"] if case["verdict"] == "failed"]
        if result.returncode == 1 and not failed:
            failed = ["crash"]  # in the candidate: there was no time to judge
        return Verdict("", failed, min((float("inf") if e is None else e for e in errors), default=0.0),
                       sum(case["verdict"] not in ("failed", "skipped") for case in cases["cases"]))

    def layout(self, program):
        result = run_program([str(program), "--gtest_brief=1"], self.build.root)
        if result is None:
            return Verdict(f"no end within {TIMEOUT} s", [], 0, 0)
        failed = sorted(set(re.findall(r"^\[  FAILED  \] (\w+\.\w+)", result.stdout, re.MULTILINE)))
        if result.returncode != 0 and not failed:
            return Verdict(f"status {result.returncode}", [], 0, 0)
        return Verdict("", failed, 0, 0)


def changed_text(mutant, text):
    """The file's text with the fault, or None and why not."""
    words = mutant.find.split()
    pattern = r"\s+".join(re.escape(word) for word in words)
    places = list(re.finditer(pattern, text))
    if len(places) != 1:
        return None, f"its text occurs {len(places)} times in {mutant.file}"
    begin, end = places[0].span()
    return text[:begin] + mutant.replace.strip() + text[end:], ""


def judged(mutant, verdict):
    """Why this verdict is not the one that the table promises; '' where it is."""
    if verdict.error:
        return f"no verdict: {verdict.error}"
    if not verdict.failed:
        return "SURVIVES"
    if mutant.check not in verdict.failed:
        return f"killed by {', '.join(verdict.failed)}, not by {mutant.check}"
    if mutant.least_error and verdict.passed_cases:
        return f"{verdict.passed_cases} cases pass"
    if verdict.least_error < mutant.least_error:
        return f"the least score error of a case is {verdict.least_error:.3g}"
    return ""


def try_mutant(mutant, builds, judge, scratch):
    start = time.monotonic()
    build = builds[mutant.race]

    def outcome(fault, killers=(), schedules=0):
        return Outcome(mutant, fault, list(killers), schedules, time.monotonic() - start)

    text, fault = changed_text(mutant, (build.root / mutant.file).read_text())
    if text is None:
        return outcome(fault)
    folder = scratch / mutant.name
    changed = folder / "overlay" / mutant.file
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.write_text(text)
    target = LAYOUT_PROGRAM if mutant.layout else CANDIDATE
    made = folder / pathlib.Path(target).name
    said = build.make(mutant.unit(), folder / "overlay", target, made)
    if said:
        (folder / "build.log").write_text(said)
        return outcome(f"does not build, see {folder / 'build.log'}")
    schedules = [f"random:{i + 1}" for i in range(mutant.schedules)] or [""]
    for tried, schedule in enumerate(schedules, 1):
        if mutant.layout:
            verdict = judge.layout(made)
        elif mutant.race:
            verdict = judge.race(made, mutant.run, schedule)
        else:
            verdict = judge.check(made, mutant.run, schedule, folder / "report.json")
        fault = judged(mutant, verdict)
        if fault != "SURVIVES":
            break
    made.unlink()  # large
    return outcome(fault, verdict.failed, tried)


def sound(builds, judge, scratch, mutants, workers):
    """Sees the candidate without faults pass all that the mutants are judged by."""
    runs = sorted({(m.race, m.run, "random:1" if m.schedules else "") for m in mutants if not m.layout})

    def check(numbered):
        number, (race, arguments, schedule) = numbered
        candidate = builds[race].folder / CANDIDATE
        verdict = (judge.race(candidate, arguments, schedule) if race else
                   judge.check(candidate, arguments, schedule, scratch / f"sound{number}.json"))
        if verdict.error or verdict.failed:
            raise Stop(f"the candidate without faults does not pass {arguments} {schedule}: "
                       f"{verdict.error or ', '.join(verdict.failed)}")

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(check, enumerate(runs)))
    if any(m.layout for m in mutants):
        verdict = judge.layout(builds[False].folder / LAYOUT_PROGRAM)
        if verdict.error or verdict.failed:
            raise Stop(f"the layout tests fail without faults: {verdict.error or ', '.join(verdict.failed)}")
    return len(runs)


def read_table(path):
    table = tomllib.loads(path.read_text())
    mutants = []
    for entry in table["mutant"]:
        try:
            mutants.append(Mutant(**entry))
        except TypeError as error:
            raise Stop(f"{path}: mutant {entry.get('name', '?')}: {error}") from error
    names = [m.name for m in mutants]
    for name in names:
        if names.count(name) > 1:
            raise Stop(f"{path}: two mutants are named {name}")
    return table["launch"], mutants


def summary(outcomes, seconds, width):
    by_check = {}
    for outcome in outcomes:
        if not outcome.fault:
            by_check.setdefault(outcome.mutant.check, []).append(outcome.mutant.name)
    lines = ["", f"{'killed by':<{width}}  mutants"]
    for check, names in sorted(by_check.items()):
        lines.append(f"{check:<{width}}  {len(names):>3}")
    failed = [outcome for outcome in outcomes if outcome.fault]
    lines += [f"FAILED  {outcome.mutant.name}: {outcome.fault}" for outcome in failed]
    lines.append(f"{len(outcomes)} mutants, {len(outcomes) - len(failed)} killed as they should be, {len(failed)} not; "
                 f"{seconds:.0f} s")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="*", help="names of mutants (fnmatch); default: all")
    parser.add_argument("--build", type=pathlib.Path, default=None, help="build folder (default: build/release)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time (default: cores)")
    parser.add_argument("--list", action="store_true", help="print names and killers, run nothing")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    start = time.monotonic()
    launch, mutants = read_table(root / "cases/mutants.toml")
    mutants = [m for m in mutants
               if not arguments.pattern or any(fnmatch.fnmatch(m.name, p) for p in arguments.pattern)]
    if not mutants:
        raise Stop("no mutant has such a name")
    width = max(len(m.name) for m in mutants)
    if arguments.list:
        for m in mutants:
            print(f"{m.name:<{width}}  {m.check:<10}  {m.file}")
        return 0
    build = Build(root, (arguments.build or root / "build/release").resolve())
    builds = {False: build}
    if any(m.race for m in mutants):
        builds[True] = Build(root, root / "build/tsan")
    scratch = build.folder / "mutants"
    scratch.mkdir(exist_ok=True)
    judge = Judge(build, launch)
    runs = sound(builds, judge, scratch, mutants, arguments.jobs)
    print(f"the candidate without faults passes the {runs} command lines ({time.monotonic() - start:.0f} s)", flush=True)
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [pool.submit(try_mutant, m, builds, judge, scratch) for m in mutants]
        for future in concurrent.futures.as_completed(futures):
            o = future.result()
            outcomes.append(o)
            tried = f"{o.schedules} of {o.mutant.schedules} schedules" if o.mutant.schedules else ""
            print(f"{'FAILED' if o.fault else 'killed':<7} {o.mutant.name:<{width}} {o.seconds:5.0f} s  "
                  f"{o.fault or ', '.join(o.killers)}  {tried}".rstrip(), flush=True)
    print(summary(outcomes, time.monotonic() - start, width))
    return 1 if any(o.fault for o in outcomes) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stop as stop:
        print(f"mutants: {stop}", file=sys.stderr)
        sys.exit(2)
