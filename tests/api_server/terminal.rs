//! At a terminal, a run that deletes asks first. The program `script` of Debian's bsdutils provides the terminal.

use std::{
    io::Write,
    net::{Ipv4Addr, TcpListener},
    process::{Command, Stdio},
};

use crate::{
    SHORT, load, six_nodes,
    support::{Fresh, fresh, objects::make},
    until_overdue,
};

/// Runs the binary at a terminal, types `answer`, and returns the content of the screen.
fn at_a_terminal(cluster: &Fresh, options: &str, answer: &str) -> String {
    let program = env!("CARGO_BIN_EXE_pod-reaper");
    let kubeconfig = cluster.kubeconfig.display();
    shown(
        &format!(
            "{program} --kubeconfig {kubeconfig} {} {options}",
            SHORT.join(" ")
        ),
        answer,
    )
}

fn shown(command: &str, answer: &str) -> String {
    let mut script = Command::new("script")
        .args([
            "--quiet",
            "--flush",
            "--return",
            "--command",
            command,
            "/dev/null",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script starts (apt-get install bsdutils)");
    // Standard input stays open until the end, as at a terminal after an answer.
    let mut keyboard = script.stdin.take().expect("it is piped");
    keyboard.write_all(answer.as_bytes()).expect("it reads");
    let screen = script.wait_with_output().expect("it ends");
    drop(keyboard);
    assert!(
        screen.status.success(),
        "{}",
        String::from_utf8_lossy(&screen.stdout)
    );
    String::from_utf8(screen.stdout).expect("text")
}

const QUESTION: &str = "Force-delete these 7 pods in context ";

fn vault_lives(cluster: &Fresh) -> bool {
    cluster.has_pod("vault", "vault-0")
}

#[test]
fn it_asks_before_it_deletes_and_only_a_yes_deletes() {
    let cluster = six_nodes::after_an_hour();

    let screen = at_a_terminal(&cluster, "--dry-run", "");
    assert!(
        !screen.contains(QUESTION) && !screen.contains(" INFO "),
        "no question, and no line of the log: {screen}"
    );
    let screen = at_a_terminal(&cluster, "", "n\n");
    // The pods are printed before the question, so that you know what the question is about.
    let (asked, _) = screen.split_once(QUESTION).expect("the question");
    for (namespace, name) in six_nodes::STUCK {
        let of_namespace = |line: &&str| line.split_whitespace().next() == Some(namespace);
        let mut lines = asked.lines().filter(of_namespace);
        assert!(
            lines.any(|line| line.split_whitespace().any(|word| word == name)),
            "{namespace}/{name} is not in {screen}"
        );
    }
    let (_, after) = screen
        .split_once("Without a yes, nothing is deleted.")
        .expect(&screen);
    assert_eq!(after.trim(), "", "that is all: {screen}");
    assert!(vault_lives(&cluster));
    assert_eq!(
        cluster.get("/apis/events.k8s.io/v1/events")["items"],
        serde_json::json!([]),
        "nothing was done"
    );
    let screen = at_a_terminal(&cluster, "", "y\n");
    assert!(screen.contains(QUESTION), "{screen}");
    assert!(
        screen.contains('\u{1b}'),
        "a terminal gets colours: {screen}"
    );
    assert!(!vault_lives(&cluster));
}

/// The bar shows the progress of many deletes. Standard output has only the report.
#[test]
fn a_bar_is_drawn_while_many_pods_are_deleted_and_leaves_no_trace_in_the_report() {
    let cluster = fresh();
    make(&cluster, "{Node alive: {ready: 'True'}, Node dead: {}}");
    let stuck = load::pods(&cluster, &[("dead".to_owned(), 30)], 0);
    until_overdue();
    let file = cluster.dir.join("report.json");
    let screen = at_a_terminal(
        &cluster,
        &format!("--yes --log-level info --output json > {}", file.display()),
        "",
    );
    assert!(screen.contains("of 30 pods"), "{screen}");
    // The log is printed above the bar, line by line.
    let logged = screen
        .split(['\r', '\n'])
        .filter(|line| line.contains(six_nodes::DELETED))
        .count();
    assert_eq!(logged, stuck.len(), "{screen}");
    let report = std::fs::read(file).expect("a report");
    let report = serde_json::from_slice::<serde_json::Value>(&report).expect("JSON");
    assert_eq!(report["summary"]["outcomes"]["deleted"], 30);
}

/// A server that accepts connections and never responds, as behind a firewall. Each try takes ten seconds.
#[test]
fn each_try_at_a_silent_server_is_shown_and_the_last_says_how_many_and_how_long() {
    // The kernel's backlog accepts connections. Nothing reads from them.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = silent.local_addr().expect("an address");
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("config");
    let content = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}], \
         users: [{{name: u, user: {{}}}}], contexts: [{{name: c, context: {{cluster: c, user: u}}}}]}}"
    );
    std::fs::write(&kubeconfig, content).expect("our folder");
    let program = env!("CARGO_BIN_EXE_pod-reaper");
    let run = format!(
        "NO_COLOR=1 {program} --kubeconfig {} --dry-run; echo ends with $?",
        kubeconfig.display()
    );
    let screen = shown(&run, "");
    let tries = screen
        .matches("no response within 10 s; trying again")
        .count();
    let last = screen.lines().find(|line| line.starts_with("error: "));
    let last = last.expect("an error");
    assert!(tries >= 2, "{screen}");
    let says = format!("no response within 10 s, asked {} times in ", tries + 1);
    assert!(last.contains(&says), "{says} is not in {last}: {screen}");
    assert!(screen.contains("ends with 1"), "{screen}");
}

#[test]
fn the_report_keeps_to_the_width_of_the_terminal() {
    let snapshot = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/six-nodes.json");
    let program = env!("CARGO_BIN_EXE_pod-reaper");
    let widest = |columns: usize| {
        let audit = format!(
            "stty rows 40 cols {columns}; NO_COLOR=1 {program} --snapshot {snapshot} --log-level off"
        );
        let screen = shown(&audit, "");
        // Commands have words that are longer than a line, and the lines of a script are not wrapped.
        let mut in_script = false;
        let is_prose = |line: &&str| {
            let line = line.trim();
            let is_script = in_script || line.starts_with("( ");
            in_script = is_script && !line.ends_with(" )");
            !is_script
                && !line.contains(['/', '{', '}'])
                && !line.starts_with(['\'', '\\'])
                && !line.starts_with("kubectl ")
        };
        let prose = screen.lines().filter(is_prose);
        prose
            .map(|line| line.trim_end().chars().count())
            .max()
            .expect("lines")
    };
    assert!(widest(60) <= 60, "{}", widest(60));
    assert!((80..=100).contains(&widest(200)), "{}", widest(200));
}
