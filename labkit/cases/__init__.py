"""Detective cases: short broken programs, given by their symptom.

    verdict = cases.check("01", case_01)                                   # run it and see
    verdict = cases.check("01", case_01, kind="SYNC", code=900, line=5)    # what you found so far
    cases.watch("01", case_01)                                             # the same under labkit.watch
    cases.hint("01")                                                       # up to three questions
    cases.progress()                                                       # which are solved

You name the class of the failure, the first code that was not cudaSuccess and the guilty line of the
program *as it was reported*, and you repair the program in place. check() runs what you hand it with
several sizes, and launches what comes back with numbers that the program has not seen. It does not
read your text: any program that keeps its contract is right.
Here: judge.py (check), answers.py (class, code, line), bench.py and trials_*.py (running and trying a
program), parts.py (what programs use), programs_*.py (as reported), reports.py (the answers: spoilers).
"""
from labkit.cases.judge import Verdict, attempt, check, hint, kinds, numbers, original, progress, symptom, watch  # noqa: F401
from labkit.cases.parts import Step, advance, host_node, noise, noise_at, shift, show  # noqa: F401
