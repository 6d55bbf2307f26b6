"""Tally: what became of the faults of one kind."""
import threading


class Tally:
    """Each fault ends in exactly one of these.

    survived      nothing was lost, and what came out is right
    lost          what had been committed was not found again, or a run began anew over it
    mixed         a result that no single step of the program ever had
    accepted_bad  damage that was taken for good, or good that was taken for damage
    stuck         somebody waited past the bound, or left with a reason that the fault does not justify
    """

    def __init__(self, name, seed):
        self.name, self.seed = name, seed
        self.tried = self.survived = self.lost = self.mixed = self.accepted_bad = self.stuck = 0
        self.failures = []
        self.notes = []  # for people
        self.skipped = False
        self._lock = threading.Lock()

    def count(self, outcome, case, why=""):
        """`outcome` is the name of one of the counters; `case` says which fault, so that it can be repeated."""
        with self._lock:
            self.tried += 1
            setattr(self, outcome, getattr(self, outcome) + 1)
            if outcome != "survived":
                self.failures.append(f"{self.name}: {outcome}: {case}: {why}")

    def survive(self, times):
        with self._lock:
            self.tried += times
            self.survived += times

    def skip(self, why):
        """Nothing can be tried here."""
        self.skipped = True
        self.notes.append("skipped: " + why)

    def held(self):
        return self.skipped or self.tried > 0 and self.survived == self.tried

    def figures(self):
        return {"name": self.name, "tried": self.tried, "survived": self.survived, "lost": self.lost, "mixed": self.mixed,
                "accepted_bad": self.accepted_bad, "stuck": self.stuck, "held": self.held(), "seed": self.seed,
                "failures": self.failures, "notes": self.notes}
