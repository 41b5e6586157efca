import subprocess, psutil, pytest
from tests.faults import test_kill as k
from tests.faults.test_kill import home, cotrail, engine, submit, undisturbed
_w = psutil.Process.wait
def wait(self, timeout=None):
    try:
        return _w(self, min(timeout or 8, 8))
    except psutil.TimeoutExpired:
        out = " ".join(self.cmdline()) + "\n"
        for p in [self, *self.children(recursive=True)]:
            out += f"== {p.pid} {p.ppid()}\n" + subprocess.run([".venv/bin/py-spy","dump","-p",str(p.pid)],capture_output=True,text=True).stdout
        open("/tmp/dev/me/hang.txt","w").write(out)
        logs = subprocess.run(f"tail -n 40 {HOME[0]}/logs/*.log", shell=True, capture_output=True, text=True).stdout
        open("/tmp/dev/me/hanglog.txt","w").write(logs)
        raise
HOME=[None]
@pytest.mark.parametrize("n", range(25))
def test_loop(n, home, cotrail, engine, submit, undisturbed, eventually, monkeypatch):
    HOME[0]=home
    monkeypatch.setattr(psutil.Process, "wait", wait)
    k.test_workers_that_are_told_to_end_give_back_what_they_hold(cotrail, engine, submit, undisturbed, eventually)
