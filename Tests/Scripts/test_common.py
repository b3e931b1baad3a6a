"""What the scripts' common part promises: nothing that it changes for a while outlives it."""

import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class WithoutServicesTests(unittest.TestCase):
    """`without_services`, with the rule of a machine of its own."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="larder-common.")
        self.addCleanup(directory.cleanup)
        self.rule = pathlib.Path(directory.name) / "policy-rc.d"

    def started(self, command):
        return subprocess.Popen(
            ["bash", "-c", f"source {ROOT}/scripts/lib/common.sh; as_root() {{ \"$@\"; }}; "
             f"without_services {command}"],
            env=os.environ | {"LARDER_POLICY": str(self.rule)}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, start_new_session=True,
            # Ignored by whoever was started in the background, and bash cannot take that back.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def test_the_rule_holds_for_the_command_and_its_status_counts(self):
        with self.started("bash -c '\"$LARDER_POLICY\"; echo $?; exit 3'") as shell:
            self.assertEqual(shell.stdout.readline(), "101\n")
            self.assertEqual(shell.wait(10), 3)
        self.assertFalse(self.rule.exists())

    def test_a_signal_takes_the_rule_away(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.started("bash -c 'echo started; read -r'") as shell:
                self.assertEqual(shell.stdout.readline(), "started\n")
                self.assertTrue(self.rule.exists())
                os.killpg(shell.pid, number)
                # The end of whatever holds the pipe: the outer shell may be gone before the inner one.
                self.assertEqual(shell.stdout.read(), "")
                self.assertNotEqual(shell.wait(10), 0)
            self.assertFalse(self.rule.exists(), number)

    def test_a_rule_of_the_machine_stays(self):
        self.rule.write_text("#!/bin/sh\nexit 0\n")
        with self.started("true") as shell:
            self.assertEqual(shell.wait(10), 0)
        self.assertEqual(self.rule.read_text(), "#!/bin/sh\nexit 0\n")


if __name__ == "__main__":
    unittest.main()
