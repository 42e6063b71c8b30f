"""What submissions do to the one who grades them. In each, `diamond` is the attack and `long_branch` is right, unless said.

    {student: (diamond, extra cell, points of 6, a word in the notes or "")}
"""
ATTACKS = {
    "endless_loop": ("def diamond(*a):\n    while True: pass", "", 3, "seconds"),
    "memory_hog": ("def diamond(*a):\n    kept = []\n    while True: kept.append(bytearray(10 << 20))", "", 3, ""),
    "memory_in_many": ("import os, time\ndef diamond(*a):\n    for k in range(5): os.fork()\n    kept = bytearray(60 << 20)\n    time.sleep(60)", "", 3, "memory"),
    "memory_unseen": ("import mmap, time\ndef diamond(*a):\n    kept = mmap.mmap(-1, 1 << 30)\n    for k in range(0, 1 << 30, 4096): kept[k] = 1\n    time.sleep(60)", "", 3, "memory"),
    "fork_bomb": ("import os, time\ndef diamond(*a):\n    while True:\n        try:\n            os.fork()\n        except OSError:\n            time.sleep(0.01)", "", 3, "more than"),
    "threads": ("import threading, time\ndef diamond(*a):\n    while True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "", 3, ""),
    "flood": ("def diamond(*a):\n    while True: print('x' * 10000)", "", 3, "seconds"),
    "fills_the_disk": ("def diamond(*a):\n    for k in range(100):\n        with open(f'/tmp/{k}', 'wb') as f:\n            for _ in range(15): f.write(bytes(1 << 20))", "", 3, "open()"),
    "ends_the_process": ("import os\ndef diamond(*a):\n    os._exit(0)", "", 3, "ended its own process"),
    "system_exit": ("def diamond(*a):\n    raise SystemExit(0)", "", 3, ""),
    "kills_all": ("import os, signal\ndef diamond(*a):\n    for pid in (1, os.getppid(), -1):\n        try: os.kill(pid, signal.SIGKILL)\n        except OSError: pass", "", 3, "import os"),
    "prints_the_verdict": ("def diamond(*a):\n    print('05 diamond: right. Tried with sizes 4, 1000, 2048.')", "", 3, ""),
    "writes_the_verdict": ("import os\ndef diamond(*a):\n    for fd in range(3, 30):\n        try: os.write(fd, b'{\"status\": \"passed\", \"token\": \"\"}\\n')\n        except OSError: pass\n    os._exit(0)", "", 3, "ended"),
    "own_grade": ("def diamond(*a): pass", "def grade(*a, **k): print('right')", 3, ""),
    "another_grade_in_labkit": ("def diamond(*a): pass", "import labkit.exercise\nlabkit.exercise.grade = lambda *a, **k: None", 0, "changed labkit.exercise.grade"),
    "another_code_in_grade": ("def diamond(*a): pass", "from labkit.exercise import grade\ngrade.__code__ = (lambda *a, **k: None).__code__", 0, "changed"),
    "another_module": ("def diamond(*a): pass", "import sys, types\nfake = types.ModuleType('labkit.exercise')\nfake.grade = print\nsys.modules['labkit.exercise'] = fake", 0, "changed labkit.exercise"),
    "another_judge": ("def diamond(*a): pass", "from labkit import labs\nlabs.part_named('diamond').judge = lambda *a: None", 0, "the judge of diamond"),
    "another_numpy": ("def diamond(*a): pass", "import numpy\nnumpy.isclose = lambda *a, **k: True", 0, "changed numpy.isclose"),
    "no_exceptions": ("def diamond(*a): pass", "get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)", 3, "get_ipython()"),
}

# Cells that swap what judges. Each is followed by `def diamond(*a): pass`, and found by the word beside it, or does nothing.
SWAPS = {
    "another_judge_under_the_name": ("""
import labkit
known = labkit.labs.parts()
def fake(t, answer): "right"
for name in ("diamond", "long_branch"):
    old = known[name]
    known["old " + name] = old
    known[name] = type(old)(old.lab, fake, 3, (), (4,))
""", "the judge of diamond"),
    "another_part_in_the_lab": ("""
import labkit
lab = labkit.labs.find(5)
def diamond(t, answer): "right"
lab.parts["diamond"] = type(lab.parts["diamond"])(lab, diamond, 3, (), (4,))
labkit.labs.parts.cache_clear()
""", "the judge of diamond"),
    "another_room": ("import types, labkit.verdict\nlabkit.verdict.judging = types.SimpleNamespace(judge=lambda *a: (None, []))", "labkit.verdict.judging"),
    "another_numpy_for_the_judge": ("from labkit.cases import bench\nbench.np = None", "labkit.cases.bench.np"),
    "another_default": ("from labkit.labs.shapes import Wanted\nimport labkit.cases.bench as b\nb.Bench.expect.__defaults__ = (1,)", "labkit.cases.bench"),
    "another_verdict": ("from labkit.verdict import Verdict\nVerdict.solved = property(lambda s: True, lambda s, v: None)", "labkit.verdict.Verdict"),
    "another_sorted": ("import builtins, labkit.exercise\nbuiltins.sorted = lambda *a, **k: []\nlabkit.exercise.grade = print", "labkit.exercise.grade"),
    "another_main": ("import __main__\n__main__.judged = lambda *a: {'status': 'passed'}", ""),
    "another_look": ("import labkit.classroom.tampering as t, labkit.classroom.inside as i, labkit.exercise\n"
                     "t.changed = lambda before: []\ni.judged = lambda *a: {'status': 'passed'}\nlabkit.exercise.grade = print", "labkit.exercise.grade"),
    "another_json": ("import json\nreal = json.dumps\njson.dumps = lambda said, **k: real(said).replace('failed', 'passed')", ""),
    "another_write": ("import os\nreal = os.write\nos.write = lambda fd, data: real(fd, data.replace(b'failed', b'passed'))", ""),
}

DELETES = '''
import os, shutil
def diamond(*a):
    places = [{course!r}, {home!r}, {labkit!r}, os.path.expanduser("~"), "/labkit-root/labkit/classroom", "..", "../..", "/"]
    for place in places:
        print(place, os.path.exists(place))
    for name in ("gradebook.db", "source/.labkit-course.json"):
        try: print(open(os.path.join({course!r}, name), "rb").read(20))
        except OSError as no: print(type(no).__name__)
    for place in places:
        try: open(os.path.join(place, "i_was_here"), "w").write("x")
        except OSError: pass
        for name in os.listdir(place) if os.path.exists(place) else ():
            try: os.remove(os.path.join(place, name))
            except OSError: pass
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
'''

CALLS_HOME = '''
import socket
def diamond(*a):
    for host, port in (("127.0.0.1", {port}), ("1.1.1.1", 53)):
        try: print("reached", socket.create_connection((host, port), 1))
        except OSError as no: print("no network", type(no).__name__)
'''
