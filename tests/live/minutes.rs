//! What the runs of a CronJob say from the death of a machine to its return, in true time.

use crate::{
    detach::Disks,
    prelude::*,
    support::{program::program, proxy::Proxy},
};
use std::time::Instant;

const MINUTE: Duration = Duration::from_mins(1);

/// A run: how long after the death, its exit code, and its page.
struct Said {
    after: Duration,
    code: i32,
    page: String,
}

/// Runs as the CronJob does, and prints the page with the requests and the time of the processor that the run took.
fn run(proxy: &Proxy, death: Instant, threshold: &str) -> Said {
    let after = death.elapsed();
    let before = proxy.seen().len();
    let mut run = Command::new("/bin/sh");
    // The second line of `times` is that of the children.
    run.args(["-c", r#""$@"; code=$?; times >&2; exit $code"#, "sh"]);
    run.arg(program().get_program());
    run.args([
        "--yes",
        "--exit-on-manual",
        "--log-level=off",
        "--kubeconfig",
    ]);
    run.arg(&proxy.kubeconfig).env_clear();
    run.env("PATH", "/usr/bin:/bin")
        .env("REAP_OLDER_THAN", threshold);
    let output = run.output().expect("it starts");
    let [page, times] =
        [output.stdout, output.stderr].map(|it| String::from_utf8(it).expect("text"));
    let code = output.status.code().expect("it ends by itself");
    eprintln!(
        "--- {threshold}: minute {:.1}, exit {code}, {} requests, user and system {}\n{page}",
        after.as_secs_f64() / 60.0,
        proxy.seen().len() - before,
        times.lines().last().unwrap_or_default(),
    );
    Said { after, code, page }
}

/// A machine with an attached volume dies, and comes back 33 minutes later without a reboot. Runs take place every ten minutes. The first
/// page with a step comes at least eight minutes before the first delete.
#[track_caller]
fn each_run(threshold: &str) {
    let disks = Disks::with(&["wk01"], &["--controllers", "--grace", "50"], "300");
    let case = &disks.case;
    kubectl(case, &["create", "namespace", "pod-reaper"]);
    kubectl(case, &["apply", "-f", &folder("cronjob/base/rbac.yaml")]);
    let proxy = case.rewriting(|_, _| {});
    disks.alive.lock().unwrap().remove("wk01");
    let death = Instant::now();
    let sleep_until = |after: Duration| thread::sleep(after.saturating_sub(death.elapsed()));
    let mut all = Vec::new();
    for number in 0..5 {
        // A node is NotReady after 50 s. The run that follows is the first that can know.
        sleep_until(MINUTE + 10 * number * MINUTE);
        all.push(run(&proxy, death, threshold));
        if number == 3 {
            sleep_until(33 * MINUTE);
            disks.alive.lock().unwrap().insert("wk01".to_owned());
            let now = Timestamp::now().strftime("%FT%TZ").to_string();
            let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": now}]);
            case.patch_status(&node_path("wk01"), json!({"conditions": ready}));
        }
    }
    let first = |words: &str| {
        let found = all.iter().find(|said| said.page.contains(words));
        found.unwrap_or_else(|| panic!("no page says {words:?}"))
    };
    let (told, deleted) = (first("Look at the console of wk01"), first("verified gone"));
    assert!(deleted.after >= told.after + 8 * MINUTE);
    assert!(told.page.contains("ACT BEFORE"), "{}", told.page);
    assert_eq!([told.code, deleted.code], [5, 5]);
    let back = first("CAME BACK");
    assert!(back.page.contains("NOT REBOOTED"), "{}", back.page);
    assert_eq!(back.code, 5);
}

#[test]
#[ignore = "42 minutes: tests/run --scenarios --include-ignored --nocapture each_run_in_true_time"]
fn each_run_in_true_time() {
    thread::scope(|scope| {
        let runs = ["10m", "5m"].map(|threshold| scope.spawn(move || each_run(threshold)));
        let ended = runs.map(thread::ScopedJoinHandle::join);
        assert!(ended.iter().all(Result::is_ok));
    });
}
