"""The lessons in their order, as the progress picture and the terminal name them. Data; a test holds it to the notebooks."""

LESSONS = (
    ("00", "Start here"),
    ("01", "What does a launch cost?"),
    ("02", "Capture"),
    ("03", "Fork and join"),
    ("04", "Instantiate and launch"),
    ("05", "Node updates"),
    ("06", "Whole-graph update"),
    ("07", "The dynamic batch"),
    ("08", "Memory in a capture"),
    ("09", "Graph memory"),
    ("10", "Pools"),
    ("11", "Synchronous calls"),
    ("12", "Modes and threads"),
    ("13", "Node types in updates"),
    ("14", "Memory lifetime"),
    ("15", "Unchecked errors"),
    ("16", "Silent failures"),
    ("17", "Warm-up, libraries, teardown"),
    ("18", "Detective cases, loud"),
    ("19", "Detective cases, silent"),
)
