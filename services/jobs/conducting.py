"""The work of an experiment's job: it is conducted until its runs are done or can't continue by themselves."""

import msgspec

from cotrail.services.data.uploaded_folders import fill_folder
from cotrail.services.jobs.experiments import FILE, Conducted
from cotrail.services.jobs.work import Work
from cotrail.services.papers.conducting import begin
from cotrail.services.papers.files import read_experiment
from cotrail.services.papers.progress import ExperimentProgress
from cotrail.services.papers.schedule import Schedule
from cotrail.services.papers.sent_files import ExperimentRequest


def carry_out(work: Work) -> Conducted:
    """Conduct the experiment of a job's request; continues what another process began."""
    request = msgspec.convert({key: value for key, value in work.request.items() if key != "name"}, ExperimentRequest)
    work.folder.mkdir(parents=True, exist_ok=True)
    fill_folder(work.folder, request.files)
    schedule = Schedule(read_experiment(request.experiment, FILE), work.folder)
    plan = schedule.plan()
    notes = tuple(schedule.check())

    def conducted(progress: ExperimentProgress) -> Conducted:
        return Conducted(experiment=schedule.name, progress=progress, notes=notes)

    def show(progress: ExperimentProgress) -> None:
        work.progress(progress.answered, msgspec.to_builtins(conducted(progress)))

    return conducted(begin(work.engine, schedule, plan, reuse=request.reuse).conduct(show))
