"""What scripts/bench makes of its figures: summaries, goals, comparisons."""

import pathlib
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "bench.d"))
sys.dont_write_bytecode = True

import cores  # noqa: E402
import measure  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402
import servers  # noqa: E402
from rows import BEST, FETCH_FLOOR, FLOOR, Goal, HAPROXY, LARDER, NGINX, ROWS  # noqa: E402

BY_NAME = {row.name: row for row in ROWS}


def hit(cpu, origin=0.0):
    return {"cpu": cpu, "rate": 1e5, "p99": 1.0, "core": 0.9, "resident": 10, "origin": origin,
            "spread": 0.0}


class SummaryTests(unittest.TestCase):
    def test_takes_medians_and_the_spread_of_the_cost(self):
        runs = [{"cpu": 8.0, "rate": 1}, {"cpu": 12.0, "rate": 5}, {"cpu": 10.0, "rate": 3}]
        self.assertEqual(measure.summary(runs),
                         {"cpu": 10.0, "rate": 3, "spread": 0.2, "rounds": 3})

    def test_refuses_answers_that_are_not_what_was_asked_for(self):
        row = BY_NAME["hit-304"]
        good = {"requests": 10, "bytes": 2000, "failed_statuses": 0, "failed_sockets": 0}
        self.assertEqual(measure.judged(good, row), good)
        for change in ({"requests": 0}, {"failed_statuses": 1}, {"failed_sockets": 1},
                       {"bytes": 20_000}):
            with self.assertRaises(measure.Failed):
                measure.judged(good | change, row)

    def test_compares_two_cores_by_the_busier_thread(self):
        run = cores.compared({"busier": 5.0, "cpu": 9.0}, {"cpu": 9.5})
        self.assertEqual((run["speedup"], run["alone"]), (1.9, 9.5))


class GoalTests(unittest.TestCase):
    def line(self, name, goal, results):
        return report.goal_line(goal, BY_NAME[name], results, BY_NAME)

    def test_measures_by_another_server(self):
        results = {"hit-1k": {LARDER: hit(9.0), HAPROXY: hit(10.0)}}
        line = self.line("hit-1k", Goal(1.0, HAPROXY), results)
        self.assertEqual(line, "| hit-1k | ≤ 1 × HAProxy = 10.0 | 9.0 | 0.90 | yes |")
        line = self.line("hit-1k", Goal(0.5, HAPROXY), results)
        self.assertIn("| **no** |", line)

    def test_measures_by_another_row(self):
        results = {"hit-304": {LARDER: hit(9.0), HAPROXY: hit(1.0)}, "hit-1k": {HAPROXY: hit(9.0)}}
        line = self.line("hit-304", Goal(1.0, HAPROXY, "hit-1k"), results)
        self.assertIn("| yes |", line)

    def test_measures_by_the_best_peer_that_did_what_was_asked_for(self):
        results = {"hit-1k": {LARDER: hit(9.0), FLOOR: hit(1.0), HAPROXY: hit(10.0),
                              NGINX: hit(5.0, origin=0.5)}}
        self.assertIn("= 10.0", self.line("hit-1k", Goal(1.0, BEST), results))

    def test_measures_by_a_number(self):
        results = {"cores": {LARDER: {"speedup": 1.9}}}
        line = self.line("cores", Goal(1.8, at_least=True), results)
        self.assertEqual(line, "| cores | ≥ 1.8 | 1.90 | – | yes |")

    def test_says_what_was_not_measured(self):
        line = self.line("hit-1k", Goal(1.0, HAPROXY), {"hit-1k": {LARDER: hit(9.0)}})
        self.assertIn("| not measured |", line)

    def test_shows_each_kind_of_row_and_the_change(self):
        for row in ROWS:
            figures = {name: 2.0 for _, name, _ in report.COLUMNS[row.kind]} | {"spread": 0.1}
            found = {LARDER: figures, HAPROXY: figures}
            self.assertIn(f"**{row.title}**", report.table(row, found))
            text = report.comparison({"rows": {row.name: found}}, {row.name: found}, BY_NAME)
            self.assertIn("+0%", text)


class TakingPartTests(unittest.TestCase):
    def who(self, name):
        makers = [servers.Floor, servers.Pass, servers.Relay, servers.Larder] + servers.PEERS
        return {maker.name for maker in makers if rounds.applies(maker, BY_NAME[name])}

    def test_rows_have_those_that_can_do_what_they_ask_for(self):
        self.assertNotIn("HAProxy", self.who("disk-4k"))
        self.assertNotIn("HAProxy", self.who("store-4k"))
        self.assertNotIn("nginx", self.who("tunnel"))
        self.assertNotIn(FLOOR, self.who("miss-1k"))
        self.assertIn(FETCH_FLOOR, self.who("miss-1k"))
        self.assertNotIn(FETCH_FLOOR, self.who("hit-1k"))
        self.assertIn(FLOOR, self.who("tunnel"))
        for row in ROWS:
            self.assertIn("Larder", self.who(row.name))


class EndingTests(unittest.TestCase):
    """A script like scripts/bench that a signal reaches while it waits for a server of its own."""

    PROGRAM = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import ending
ending.in_order()
server = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
try:
    print("started", flush=True)
    server.wait()
finally:
    server.terminate()
    server.wait()
    print("stopped", flush=True)
"""

    def test_signals_stop_what_was_started(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            program = subprocess.Popen(
                [sys.executable, "-B", "-c", self.PROGRAM, ROOT / "scripts" / "bench.d"],
                stdout=subprocess.PIPE, text=True)
            with program:
                self.assertEqual(program.stdout.readline(), "started\n")
                program.send_signal(number)
                self.assertEqual(program.stdout.readline(), "stopped\n")
                self.assertEqual(program.wait(10), 128 + number)


if __name__ == "__main__":
    unittest.main()
