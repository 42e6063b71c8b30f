"""`python -m labkit` is the command `labkit`, also where the scripts folder is not on the PATH."""
from labkit.cli import app

app(prog_name="labkit")
