"""The teacher's side: an nbgrader course from the exercises, and grading that runs no stranger's code outside a sandbox.

commands.py   labkit classroom export | autograde | nbgrader
course.py     a course folder: the notebooks in source/, nbgrader's settings, the secret seed
handout.py    one exercise as an nbgrader notebook              collecting.py  whose notebook is it, in what a platform hands out?
fit.py        which submissions nbgrader gets                   restoring.py   the given cells, as they were handed out
grading.py    what nbgrader runs in place of its own kernel     autograde.py   all submissions, one after the other
record.py     what was graded, and whether to the end
judge.py      one test of one submission                        inside.py      what runs in the sandbox
sandbox.py    bubblewrap's command line                         limits.py      time, memory, processes, from outside
tampering.py  was labkit itself changed by the submission?      suspicion.py   lines that a teacher should look at
"""
